"""Beyond the paper (ours): what VoI gains, tested on seeds that it was not designed on."""
