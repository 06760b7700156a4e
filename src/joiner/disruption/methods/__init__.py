"""The methods of disruption, a module each: which nodes should go for that reason, as a pure function of the situation."""
