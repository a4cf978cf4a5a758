"""The life of a group of rollouts: read, outcomes, segmentation, judgement, rewards."""
