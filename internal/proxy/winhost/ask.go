package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// WMI is the host's management service. [wmi.Pool] is one on Windows.
type WMI interface {
	Query(ctx context.Context, q wmi.Query) ([]wmi.Instance, error)
	Associated(ctx context.Context, of wmi.Instance, a wmi.Association) ([]wmi.Instance, error)
	Call(ctx context.Context, c wmi.Call) (wmi.Result, error)
}

// objectID is the key of disks, partitions and volumes: an instance that is acted on must be read with it.
const objectID = "ObjectId"

// asked is WMI with errors that say what was asked, and of what.
type asked struct {
	WMI
	isQuiet bool // the request has a secret: no error repeats what a provider says, before it knows the secret or after
}

// rows selects instances; what names them in errors.
func (a asked) rows(ctx context.Context, what string, q wmi.Query) ([]wmi.Instance, error) {
	found, err := a.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("failed to query %s. error: %w", what, a.numbered(err))
	}
	return found, nil
}

// row selects one instance. None is fs.ErrNotExist, worded as in csi-proxy.exe; more than one is an error too.
func (a asked) row(ctx context.Context, what string, q wmi.Query) (wmi.Instance, error) {
	found, err := a.rows(ctx, what, q)
	if err != nil {
		return wmi.Instance{}, err
	}
	return only(what, found)
}

func only(what string, found []wmi.Instance) (wmi.Instance, error) {
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return wmi.Instance{}, fmt.Errorf("failed to query %s. error: not found: %w", what, fs.ErrNotExist)
	}
	return wmi.Instance{}, fmt.Errorf("failed to query %s. error: %d instances where there must be one", what, len(found))
}

// related follows an association.
func (a asked) related(ctx context.Context, what string, of wmi.Instance, through, result string) ([]wmi.Instance, error) {
	found, err := a.Associated(ctx, of, wmi.Association{Through: through, Result: result})
	if err != nil {
		return nil, fmt.Errorf("follow %s from %s to %s: %w", through, what, result, a.numbered(err))
	}
	return found, nil
}

// invoke is answer for a method whose parameters that come back are of no use.
func (a asked) invoke(ctx context.Context, what string, table codes, c wmi.Call, fine ...uint32) error {
	_, err := a.answer(ctx, what, table, c, fine...)
	return err
}

// answer executes a method. Its number must be 0 or one of fine.
func (a asked) answer(ctx context.Context, what string, table codes, c wmi.Call, fine ...uint32) (wmi.Result, error) {
	operation := "WMI " + c.Class + "." + c.Method
	result, err := a.Call(ctx, c)
	if answer, ok := errors.AsType[*wmi.Error](err); ok {
		// Providers answer with their own numbers here too.
		if slices.Contains(fine, answer.Code) {
			return wmi.Result{Return: answer.Code}, nil
		}
		m := table.in(ownCode(answer.Code))
		if m.kind == nil {
			m.kind = err
		}
		text := a.said(err).Error()
		if m.text != "" {
			text += ": " + m.text
		}
		return wmi.Result{}, &codeError{operation, what, answer.Code, meaning{text, m.kind}}
	}
	if err != nil {
		return wmi.Result{}, fmt.Errorf("%s failed (target=%s): %w", operation, what, refused(err))
	}
	if result.Return != 0 && !slices.Contains(fine, result.Return) {
		return wmi.Result{}, &codeError{operation, what, result.Return, table.in(result.Return)}
	}
	return result, nil
}

// numbered puts the number of an answer in front of it, as methods have it.
func (a asked) numbered(err error) error {
	if answer, ok := errors.AsType[*wmi.Error](err); ok {
		return fmt.Errorf("code=%d: %w", answer.Code, a.said(err))
	}
	return refused(err)
}

// said adds what the provider says about an error. It is the only place that does.
func (a asked) said(err error) error {
	answer, ok := errors.AsType[*wmi.Error](err)
	if !ok || a.isQuiet || answer.Text == "" || answer.Text == answer.System {
		return err
	}
	return fmt.Errorf("%w: %s", err, answer.Text)
}

// refused makes a call that was not begun, because too many wait or do not return, an error that tells its caller to try again.
func refused(err error) error {
	for _, why := range []error{wmi.ErrBusy, wmi.ErrStuck, wmi.ErrClosed} {
		if errors.Is(err, why) {
			return notBegun{err}
		}
	}
	return err
}

// notBegun is the error of a call that was not begun. It keeps its text.
type notBegun struct{ error }

func (e notBegun) Unwrap() []error { return []error{e.error, handler.ErrUnavailable} }

// ownCode takes a system error code out of the HRESULT that carries it.
// https://learn.microsoft.com/windows/win32/api/winerror/nf-winerror-hresult_from_win32
func ownCode(hresult uint32) uint32 {
	const facilityWin32 = 0x8007
	if hresult>>16 == facilityWin32 {
		return hresult & 0xFFFF
	}
	return hresult
}

// unknown is wrapped around a property that is missing or of another type than it should be.
func unknown(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
