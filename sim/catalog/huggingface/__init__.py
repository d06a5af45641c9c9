"""Reading models from the config.json files of Hugging Face, in the catalogue or of the user."""
