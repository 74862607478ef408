package winsvc

// EventSource is the name under which the proxy writes to the Application event log.
const EventSource = "Pipeguard"

// EventLog takes events. Ids lie between 1 and 1000, which is what the message file of Windows' own EventCreate.exe covers.
type EventLog interface {
	Info(id uint32, text string) error
	Warning(id uint32, text string) error
	Error(id uint32, text string) error
	Close() error
}
