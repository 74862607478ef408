package scan

// Bounds, in bytes, of texts in a report: a message is read by a person, and a thousand of them must fit into one object.
const (
	maxMessage = 1024
	maxField   = 512
	maxShort   = 320 // a kind and a name, of 253 characters at most, and what is between them
)
