package winhost

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// controlManager is the service manager of this host.
type controlManager struct{}

// controlled is an open service with the connection that it was opened through.
type controlled struct {
	*mgr.Service
	manager windows.Handle
}

var rights = map[serviceRight]uint32{
	toQuery: windows.SERVICE_QUERY_CONFIG | windows.SERVICE_QUERY_STATUS | windows.SERVICE_ENUMERATE_DEPENDENTS,
	toStart: windows.SERVICE_QUERY_STATUS | windows.SERVICE_START,
	toStop:  windows.SERVICE_QUERY_STATUS | windows.SERVICE_STOP,
}

// Open asks for no more rights than the act needs: some services do not give all of them, as package mgr wants, to any account.
// https://learn.microsoft.com/windows/win32/services/service-security-and-access-rights
func (controlManager) Open(name string, to serviceRight) (service, error) {
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, failed("OpenServiceW", "service "+name, err)
	}
	manager, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return nil, failed("OpenSCManagerW", "the service manager", err)
	}
	handle, err := windows.OpenService(manager, text, rights[to])
	if err != nil {
		return nil, errors.Join(failed("OpenServiceW", "service "+name, err), windows.CloseServiceHandle(manager))
	}
	return controlled{&mgr.Service{Name: name, Handle: handle}, manager}, nil
}

func (c controlled) object() string { return "service " + c.Name }

// Config reads no more than the two: package mgr asks for more, which not every service manager knows.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfigw
func (c controlled) Config() (displayName string, start uint32, err error) {
	buffer := make([]byte, 8<<10) // the most that it can need
	config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	var needed uint32
	if err := windows.QueryServiceConfig(c.Handle, config, uint32(len(buffer)), &needed); err != nil { // #nosec G115 -- a constant
		return "", 0, failed("QueryServiceConfigW", c.object(), err)
	}
	return windows.UTF16PtrToString(config.DisplayName), config.StartType, nil
}

func (c controlled) State() (state, exit uint32, err error) {
	status, err := c.Query()
	return uint32(status.State), status.Win32ExitCode, failed("QueryServiceStatusEx", c.object(), err)
}

func (c controlled) Start() error {
	return failed("StartServiceW", c.object(), c.Service.Start())
}

func (c controlled) Stop() error {
	_, err := c.Control(svc.Stop)
	return failed("ControlService", c.object(), err)
}

func (c controlled) Dependents() ([]string, error) {
	names, err := c.ListDependentServices(svc.Active)
	return names, failed("EnumDependentServicesW", c.object(), err)
}

func (c controlled) Close() error {
	return errors.Join(c.Service.Close(), windows.CloseServiceHandle(c.manager))
}
