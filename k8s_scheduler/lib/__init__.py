"""Small tools without domain words."""
