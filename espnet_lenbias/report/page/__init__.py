"""The page to look at and listen to: its data, and the HTML file made of them."""
