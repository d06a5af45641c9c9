"""Explains runs to people: the screen, the progress line, the plots. The only room that prints and draws."""
