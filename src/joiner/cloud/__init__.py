"""The provider door and the providers behind it. A provider chooses only among the options it is handed."""
