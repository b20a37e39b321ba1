"""Where frames come from: bags, KITTI drives, NYU folders and the synthetic world; one file per source."""
