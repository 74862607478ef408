package apiserver

// methodRow says which operation a served method is, where the names differ.
type methodRow struct {
	group, method string
	operation     string
	// hub is the version that declares the operation, where the newest does not.
	hub string
	// errorPrefix stands before the error texts of this method; the old servers put it there when they forwarded.
	errorPrefix string
}

// part is one of the two messages of a method.
type part string

const (
	inRequest  part = "request"
	inResponse part = "response"
)

// anyMethod in a fieldRow stands for all methods of the group.
const anyMethod = "*"

// fieldRow says what becomes of a field whose name or kind is not the hub's. Fields without a row are
// paired by name and must be of one kind.
type fieldRow struct {
	group, method string // served method
	part          part
	served, hub   string     // field names; dotted below a message or the values of a map; "" if there is no such field
	as            conversion // needed where the kinds differ
	entries       []entryRow // of a served map that the hub has as fields; then there is no hub
	why           string     // required where one of the names is ""
}

// entryRow is an entry of a map of texts, which is always there, and the hub's field that is its value.
type entryRow struct{ key, hub string }

// rowBook looks rows up and remembers which were of use, so that a row that says nothing any more is a fault.
type rowBook struct {
	methods     []methodRow
	fields      []fieldRow
	usedMethods map[int]bool
	usedFields  map[int]bool
}

func newRowBook(t tables) *rowBook {
	return &rowBook{methods: t.methods, fields: t.fields, usedMethods: map[int]bool{}, usedFields: map[int]bool{}}
}

func (b *rowBook) method(group, method string) methodRow {
	for i, row := range b.methods {
		if row.group == group && row.method == method {
			b.usedMethods[i] = true
			return row
		}
	}
	return methodRow{group: group, method: method, operation: method}
}

// field finds the row of a served field, or of a hub field that has no served one. A row of the method itself comes
// before a row of all methods.
func (b *rowBook) field(group, method string, in part, served, hub string) (fieldRow, bool) {
	for _, name := range []string{method, anyMethod} {
		for i, row := range b.fields {
			if row.group == group && row.method == name && row.part == in && row.served == served && (served != "" || row.hub == hub) {
				b.usedFields[i] = true
				return row, true
			}
		}
	}
	return fieldRow{}, false
}
