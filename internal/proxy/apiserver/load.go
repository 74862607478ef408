package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Load compiles all versions of the groups. Its error lists every field and method that it could not map,
// every unclassified value, and every row without effect: serve nothing then. The same groups are compiled once: what is returned is shared.
func Load(groups ...string) ([]*API, error) {
	groups = slices.Clone(groups)
	compiled, _ := loaded.LoadOrStore(strings.Join(groups, ","), sync.OnceValues(func() ([]*API, error) { return load(published(), groups) }))
	apis, err := compiled.(func() ([]*API, error))() //nolint:errcheck // nothing else is stored
	return slices.Clone(apis), err
}

// loaded has what Load returns for groups, joined by commas.
var loaded sync.Map

func load(t tables, groups []string) ([]*API, error) {
	if len(groups) == 0 {
		return nil, errors.New("no API group to load")
	}
	l := &loader{tables: t, rows: newRowBook(t), operations: map[operationRow]*Operation{}}
	var apis []*API
	for i, name := range groups {
		at := slices.IndexFunc(t.groups, func(g groupRow) bool { return g.name == name })
		switch {
		case at < 0:
			l.fault("%s: there is no such API group", name)
		case slices.Contains(groups[:i], name):
			l.fault("%s: API group named twice", name)
		default:
			apis = append(apis, l.group(t.groups[at])...)
		}
	}
	l.stale(groups)
	if err := errors.Join(l.faults...); err != nil {
		return nil, fmt.Errorf("map the published API: %w", err)
	}
	return apis, nil
}

type loader struct {
	tables     tables
	rows       *rowBook
	operations map[operationRow]*Operation
	faults     []error
}

func (l *loader) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf(format, args...))
}

func (l *loader) group(g groupRow) []*API {
	l.unlisted(g)
	var apis []*API
	for _, version := range g.versions {
		service, err := findService(version, g.service)
		if err != nil {
			l.fault("%s: %w", g.name, err)
			continue
		}
		a := &API{gv: GroupVersion{g.name, version}, service: service}
		for i := range service.Methods().Len() {
			if m, ok := l.method(g, version, service.Methods().Get(i)); ok {
				a.methods = append(a.methods, m)
			}
		}
		apis = append(apis, a)
	}
	return apis
}

// unlisted finds versions that are compiled into this program and would not be served.
func (l *loader) unlisted(g groupRow) {
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if f.Services().ByName(protoreflect.Name(g.service)) != nil && !slices.Contains(g.versions, string(f.Package())) {
			l.fault("%s: version %s is published but not listed", g.name, f.Package())
		}
		return true
	})
}

func (l *loader) method(g groupRow, version string, d protoreflect.MethodDescriptor) (Method, bool) {
	row := l.rows.method(g.name, string(d.Name()))
	if row.hub == "" {
		row.hub = g.versions[len(g.versions)-1]
	}
	before := len(l.faults)
	m := Method{
		Name:        string(d.Name()),
		FullMethod:  fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name()),
		Operation:   l.operation(g.name, row.operation),
		version:     version,
		errorPrefix: row.errorPrefix,
	}
	hubService, err := findService(row.hub, g.service)
	if err != nil {
		l.fault("%s %s: %w", g.name, d.FullName(), err)
		return Method{}, false
	}
	hub := hubService.Methods().ByName(protoreflect.Name(row.operation))
	if hub == nil {
		l.fault("%s %s: the hub %s has no operation %s", g.name, d.FullName(), row.hub, row.operation)
		return Method{}, false
	}
	if m.served, err = findMessages(d); err != nil {
		l.fault("%s %s: %w", g.name, d.FullName(), err)
		return Method{}, false
	}
	if m.hub, err = findMessages(hub); err != nil {
		l.fault("%s %s: %w", g.name, hub.FullName(), err)
		return Method{}, false
	}
	c := compiler{rows: l.rows, group: g.name, method: m.Name, part: inRequest, faults: &l.faults}
	m.toHub = c.message(m.served.request.Descriptor(), m.hub.request.Descriptor(), "", 0)
	c.part = inResponse
	m.fromHub = c.message(m.served.response.Descriptor(), m.hub.response.Descriptor(), "", 0)
	for _, t := range []protoreflect.MessageType{m.served.request, m.served.response, m.hub.request, m.hub.response} {
		l.classified(g.name, t.Descriptor(), 0)
	}
	m.paths = l.paths(g.name, m.served.request.Descriptor(), 0)
	if m.Operation != nil && (hasSecrets(g.name, m.served.request.Descriptor(), 0) || hasSecrets(g.name, m.hub.request.Descriptor(), 0)) {
		m.Operation.IsOpen = false
	}
	return m, len(l.faults) == before
}

// operation returns the one Operation of that name, whichever version asks for it.
func (l *loader) operation(group, name string) *Operation {
	at := slices.IndexFunc(l.tables.operations, func(o operationRow) bool { return o.group == group && o.name == name })
	if at < 0 {
		l.fault("%s: operation %s is not listed, so it is not known whether it changes the host", group, name)
		return nil
	}
	row := l.tables.operations[at]
	if l.operations[row] == nil {
		l.operations[row] = &Operation{Group: row.group, Name: row.name, ReadOnly: row.readOnly, IsOpen: true}
	}
	return l.operations[row]
}

// stale finds rows of the loaded groups that nothing needed: they describe an API that is not there.
func (l *loader) stale(groups []string) {
	for i, row := range l.tables.methods {
		if slices.Contains(groups, row.group) && !l.rows.usedMethods[i] {
			l.fault("%s: the row for method %s matches nothing", row.group, row.method)
		}
	}
	for i, row := range l.tables.fields {
		if slices.Contains(groups, row.group) && !l.rows.usedFields[i] {
			l.fault("%s: the row for %s %s %q -> %q matches nothing", row.group, row.method, row.part, row.served, row.hub)
		}
	}
	for _, row := range l.tables.operations {
		if slices.Contains(groups, row.group) && l.operations[row] == nil {
			l.fault("%s: operation %s is listed but no version has it", row.group, row.name)
		}
	}
}

func findService(version, service string) (protoreflect.ServiceDescriptor, error) {
	name := protoreflect.FullName(version + "." + service)
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, fmt.Errorf("find service %s: %w", name, err)
	}
	s, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is not a service", name)
	}
	return s, nil
}

// findMessages returns the registered types of a method. Their descriptors count: for packages of the older
// generator they are not the objects that the service's own descriptor holds.
func findMessages(m protoreflect.MethodDescriptor) (messages, error) {
	if m.IsStreamingClient() || m.IsStreamingServer() {
		return messages{}, errors.New("streams are not served")
	}
	request, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
	if err != nil {
		return messages{}, fmt.Errorf("find message %s: %w", m.Input().FullName(), err)
	}
	response, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
	if err != nil {
		return messages{}, fmt.Errorf("find message %s: %w", m.Output().FullName(), err)
	}
	return messages{request, response}, nil
}
