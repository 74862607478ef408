package wmi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLiteral bounds a text in a query, in bytes. No path, name or address that is asked for is longer.
const maxLiteral = 1024

// WQL writes the query in WMI's query language.
//
// Names must be plain identifiers. A text is written in single quotes with its backslashes doubled, which is the escape that Microsoft
// documents; a text that needed any other (quotes, control characters, invalid UTF-8) or is longer than 1024 bytes is an error.
// With a selection the system property __PATH is selected too: without it or the key properties an instance has no path.
// https://learn.microsoft.com/windows/win32/wmisdk/wql-sql-for-wmi
func (q Query) WQL() (string, error) {
	errs := []error{checkNamespace(q.Namespace), checkName("class", q.Class)}
	columns := "*"
	if q.Select != nil {
		if len(q.Select) == 0 {
			errs = append(errs, errors.New("an empty selection: nil selects every property"))
		}
		for _, name := range q.Select {
			errs = append(errs, checkName("property", name))
		}
		columns = strings.Join(q.Select, ", ") + ", __PATH"
	}
	conditions := make([]string, len(q.Where))
	for i, equal := range q.Where {
		value, err := literal(equal.Value)
		if err != nil {
			err = fmt.Errorf("condition on property %q: %w", equal.Property, err)
		}
		errs = append(errs, checkName("property", equal.Property), err)
		conditions[i] = equal.Property + " = " + value
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	query := "SELECT " + columns + " FROM " + q.Class
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	return query, nil
}

// literal writes a value as WQL reads it. Its errors do not repeat the value.
func literal(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return quoted(v)
	case bool:
		return strings.ToUpper(strconv.FormatBool(v)), nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprintf("%d", v), nil
	}
	return "", fmt.Errorf("a value of type %T has no place in a query", value)
}

func quoted(text string) (string, error) {
	if len(text) > maxLiteral {
		return "", fmt.Errorf("a text of %d bytes is longer than the %d that a query may have", len(text), maxLiteral)
	}
	if !utf8.ValidString(text) {
		return "", errors.New("the text is not valid UTF-8")
	}
	for _, r := range text {
		if r == '\'' || r == '"' || unicode.IsControl(r) {
			return "", fmt.Errorf("a text with %U has no place in a query", r)
		}
	}
	return "'" + strings.ReplaceAll(text, `\`, `\\`) + "'", nil
}

// isName reports whether a text is a name as [A-Za-z_][A-Za-z0-9_]* has it, of at most 256 bytes.
func isName(text string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	return text != "" && len(text) <= 256 && (text[0] < '0' || text[0] > '9') && strings.Trim(text, allowed) == ""
}

func checkName(kind, name string) error {
	if !isName(name) {
		return fmt.Errorf("%.64q is not the name of a %s", name, kind)
	}
	return nil
}

// checkNamespace takes names that backslashes separate, the first of which is root.
func checkNamespace(namespace string) error {
	names := strings.Split(namespace, `\`)
	good := len(names) <= 8 && strings.EqualFold(names[0], "root")
	for _, name := range names {
		good = good && isName(name)
	}
	if !good {
		return fmt.Errorf("%.64q is not a namespace", namespace)
	}
	return nil
}

// checkPath takes what WMI itself gave as the path of an object.
func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("the instance has no path: its key properties were not read")
	case len(path) > 8192:
		return fmt.Errorf("an object path of %d bytes", len(path))
	case !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl):
		return fmt.Errorf("%.64q is not an object path", path)
	}
	return nil
}

// associators asks for the instances at the other end of an association. The path is WMI's own, and stands between braces: outside of its
// quoted key values it may have none, and its quotes must close, so that names chosen by others (a target's, a share's) end nothing early.
// https://learn.microsoft.com/windows/win32/wmisdk/associators-of-statement
func associators(of Instance, through Association) (string, error) {
	err := errors.Join(checkNamespace(of.Namespace), checkPath(of.Path), checkName("class", through.Through), checkName("class", through.Result))
	if err != nil {
		return "", err
	}
	inside, escaped := false, false
	for _, r := range of.Path {
		switch {
		case escaped:
			escaped = false
		case inside && r == '\\':
			escaped = true
		case r == '"':
			inside = !inside
		case !inside && strings.ContainsRune("{}' ", r):
			return "", fmt.Errorf("%.64q has %q outside of a key's value", of.Path, r)
		}
	}
	if inside {
		return "", fmt.Errorf("%.64q has a key's value that does not end", of.Path)
	}
	return "ASSOCIATORS OF {" + of.Path + "} WHERE AssocClass = " + through.Through + " ResultClass = " + through.Result, nil
}
