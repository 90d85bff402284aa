"""Looks after parked pods: wakes them and keeps their reasons true."""
