package wmi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-ole/go-ole"
)

// comSession is a thread's connections to WMI.
type comSession struct {
	locator     locator
	connections connections[services]
	limit       int // of instances
}

// newSession makes the calling thread one of COM's multithreaded apartment.
func newSession(limit int) (session, error) {
	const alreadyOne = 1 // S_FALSE
	if err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED); err != nil && codeOf(err) != alreadyOne {
		return nil, failed("CoInitializeEx", codeOf(err))
	}
	locator, err := newLocator()
	if err != nil {
		ole.CoUninitialize()
		return nil, err
	}
	s := &comSession{locator: locator, limit: limit}
	s.connections.connect = func(namespace string) (services, error) {
		made, err := locator.connect(namespace)
		return made, named("connect", namespace, err)
	}
	s.connections.release = func(old services) { old.release() }
	return s, nil
}

func (s *comSession) close() {
	s.connections.close()
	s.locator.release()
	ole.CoUninitialize()
}

// query implements session.
func (s *comSession) query(ctx context.Context, namespace, wql string, names []string) (found []Instance, err error) {
	err = s.connections.read(namespace, func(connection services) error {
		rows, err := connection.query(wql)
		if err != nil {
			return err
		}
		defer rows.release()
		found, err = s.instances(ctx, rows, namespace, names)
		return err
	})
	return found, err
}

// instances reads every row. It looks at ctx before each and, when there are none yet, every second.
func (s *comSession) instances(ctx context.Context, rows rows, namespace string, names []string) ([]Instance, error) {
	var found []Instance
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, more, err := rows.next()
		if err != nil {
			return nil, err
		}
		if row.unknown == nil {
			if !more {
				return found, nil
			}
			continue
		}
		if len(found) == s.limit {
			row.release()
			return nil, fmt.Errorf("more than %d instances", s.limit)
		}
		one, err := row.instance(namespace, names)
		row.release()
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
}

// call implements session. Only what comes before the method's execution may be repeated over a new connection.
func (s *comSession) call(c Call, in []parameter) (Result, error) {
	var given object
	err := s.connections.read(c.Namespace, func(connection services) (err error) {
		given, err = prepare(connection, c, in)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	defer func() { given.release() }()
	var answer object
	err = s.connections.once(c.Namespace, func(connection services) (err error) {
		answer, err = connection.execute(cmp.Or(c.Path, c.Class), c.Method, given)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if answer.unknown == nil {
		return Result{}, fmt.Errorf("the method has returned nothing, %w", ErrOutcome)
	}
	defer answer.release()
	out, err := answer.properties(nil, 0)
	if err != nil {
		return Result{}, fmt.Errorf("read what the method has returned, %w: %w", ErrOutcome, err)
	}
	return result(out)
}

// prepare makes the parameters of a method. Without any it is the zero object; but the class is read all the same, so that a connection
// that is gone is noticed before the execution, which is not repeated. Errors name a parameter and never repeat a value.
func prepare(connection services, c Call, in []parameter) (object, error) {
	class, err := connection.class(c.Class)
	if errors.Is(err, fs.ErrNotExist) {
		return object{}, fmt.Errorf("there is no such class: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return object{}, err
	}
	defer class.release()
	if len(in) == 0 {
		return object{}, nil
	}
	made, err := class.parameters(c.Method)
	if errors.Is(err, fs.ErrNotExist) {
		return object{}, fmt.Errorf("there is no such method: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return object{}, err
	}
	for _, p := range in {
		if err := give(made, p); err != nil {
			made.release()
			return object{}, fmt.Errorf("parameter %s: %w", p.name, err)
		}
	}
	return made, nil
}

// give sets a parameter, in the type that the method declares for it.
func give(parameters object, p parameter) error {
	none := fmt.Errorf("the method has none of that name: %w", errors.ErrUnsupported)
	if parameters.unknown == nil {
		return none
	}
	declared, err := parameters.get(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		return none
	}
	if err != nil {
		return err
	}
	declared.clear()
	value, err := typed(p.value, declared.kind)
	if err != nil {
		return err
	}
	return parameters.set(p.name, value)
}

// codeOf is the HRESULT of one of go-ole's errors.
func codeOf(err error) uint32 {
	if code, ok := errors.AsType[*ole.OleError](err); ok {
		return hresult(code.Code())
	}
	return 0x80004005 // E_FAIL
}
