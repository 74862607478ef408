package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// The Status of a mapping.
// https://learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbmapping
const (
	mappingOK           = 0
	mappingConnecting   = 4
	mappingReconnecting = 5
)

// condition is what can be said of a mapping that is there.
type condition int

const (
	works    condition = iota // it is connected, and the server answers
	silent                    // the server does not answer now; Windows may connect again by itself
	rejected                  // the server rejects the credentials that the mapping was made with
	dead                      // it is not connected, or the server has no such share any more
)

// settle says whether the mappings of a share will do for a request. If they will not, they are gone when it returns without
// an error, and the share can be mapped with the credentials of the request.
//
// Credentials are proven by a mapping that is made with them, and by nothing else: Windows keeps one set of credentials for a
// server and answers a second one with a conflict before it asks the server, and access to a share that is mapped for the whole
// node says nothing about the credentials in hand. So a mapping proves those that it was made with. Any others are refused
// for as long as the mapping may be in use, and tried by mapping the share anew when it is not. No open file is closed for
// that.
func (s shares) settle(ctx context.Context, share handler.Share, m handler.SMBMapping, found []wmi.Instance) (keep bool, err error) {
	if len(found) == 0 {
		s.known.forget(share)
		return false, nil
	}
	state, why := s.condition(share, found)
	known := s.known.compare(share, m)
	switch {
	case state == silent:
		return false, fmt.Errorf("the mapping of %s: the server does not answer, and the mapping is left as it is: %w (%w)", share, handler.ErrUnavailable, why)
	case known == unchanged && state == works:
		return true, nil
	case known == unchanged && state == rejected:
		return false, fmt.Errorf("the mapping of %s: the server does not accept these credentials any more: %w", share, why)
	case known != unchanged && state == works, known == changed && state == dead:
		// A mapping of this process that is dead may still be what volumes wait for; one that it did not make may be left from
		// before the node was started, with links that lead nowhere.
		if use := s.use(ctx, share); use != nil {
			s.log.Warn("a share is in use and was not mapped with the credentials of a request, which is refused",
				zap.String(logkeys.Name, string(share)), zap.Error(use))
			return false, conflict(share, known)
		}
	}
	s.log.Info("a mapping is made anew", zap.String(logkeys.Name, string(share)), zap.Error(why))
	if err := s.remove(ctx, share, found, false); err != nil {
		return false, fmt.Errorf("make the mapping of %s anew: %w", share, err)
	}
	return false, nil
}

// conflict is the answer to credentials that cannot be accepted while a share is in use.
func conflict(share handler.Share, known comparison) error {
	const remedy = "It is left as it is. Try again when no volume uses the share, or remove the mapping once its pods have left the node"
	if known == changed {
		return fmt.Errorf("%s is mapped with other credentials and is in use. %s: %w", share, remedy, fs.ErrPermission)
	}
	return fmt.Errorf("%s was not mapped by this proxy and is in use, so these credentials cannot be compared or tried. %s: %w", share, remedy, handler.ErrPrecondition)
}

// condition looks at mappings and at what the server says.
func (s shares) condition(share handler.Share, found []wmi.Instance) (condition, error) {
	connected := false
	for _, row := range found {
		switch status, err := row.Uint("Status"); {
		case err != nil:
		case status == mappingOK:
			connected = true
		case status == mappingConnecting, status == mappingReconnecting:
			return silent, errors.New("it is being connected")
		}
	}
	if !connected {
		return dead, errors.New("it is not connected")
	}
	answers, err := s.network.Answers(string(share))
	switch {
	case err == nil && answers:
		return works, nil
	case err == nil, isCode(err, errorBadNetName):
		return dead, errors.New("the server has no such share")
	case isCode(err, errorAccessDenied): // the server knows the user, who may not look at the root
		return works, nil
	case isCode(err, rejectsCredentials...):
		return rejected, err
	}
	return silent, err
}

// System error codes: ERROR_ACCESS_DENIED and ERROR_BAD_NET_NAME.
const (
	errorAccessDenied = 5
	errorBadNetName   = 67
)

// rejectsCredentials are the system error codes by which a server says that the name or the password is wrong or has expired.
var rejectsCredentials = []uint32{86, 1326, 1330}
