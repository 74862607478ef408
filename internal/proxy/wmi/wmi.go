package wmi

import "fmt"

// Namespaces.
const (
	CIMv2   = `root\cimv2`                     // services, the machine's firmware
	Storage = `root\Microsoft\Windows\Storage` // disks, partitions, volumes, iSCSI
	SMB     = `root\Microsoft\Windows\Smb`     // mapped shares
)

// Query selects instances of a class. WQL says how it is written.
type Query struct {
	Namespace string
	Class     string
	Select    []string // properties to read, and the path; nil reads all
	Where     []Equal  // all must hold; nil selects every instance
}

// Equal is a condition: a property has a value.
type Equal struct {
	Property string
	Value    any // string, bool, or an integer of any size
}

// Instance is an object as it was when it was read.
type Instance struct {
	Namespace  string
	Path       string         // under which methods are executed and associations followed
	Properties map[string]any // nil, bool, int64, uint64, float64, string, []any or an embedded Instance; 64-bit numbers come as decimal strings
}

// Association names the classes that lead from an instance to others.
type Association struct {
	Through string // the class of the association
	Result  string // the class of the instances at its other end
}

// Call executes a method of a class, or of an instance if Path is set.
type Call struct {
	Namespace string
	Class     string
	Path      string
	Method    string
	In        map[string]any // parameters by name: nil (left out), bool, string, Secret, integers; those of 64 bits may be decimal strings
}

// Secret is a text that only the method may read. It prints as [secret] under every verb.
type Secret string

// Format implements fmt.Formatter.
func (Secret) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, "[secret]") }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Result is what a method has returned. A number other than 0 is not an error here: what it means differs from class to class.
type Result struct {
	Return uint32
	Out    map[string]any // the other parameters that came back, in the types of Instance.Properties
}
