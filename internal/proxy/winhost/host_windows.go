package winhost

// New acts on this host. All faults of the options are reported at once.
func New(o Options) (*Host, error) {
	return newHost(o, system{
		open:     openWorking,
		devices:  deviceDrivers{},
		mounts:   mountManager{},
		network:  redirector{},
		services: controlManager{},
		memory:   hive{memoryKey},
	})
}
