"""`make soak`: hours of churn on a real control plane, and what becomes of the memory."""
