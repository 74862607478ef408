package winhost

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

func TestCallsThatWMIDoesNotTakeAreUnavailable(t *testing.T) {
	for _, why := range []error{wmi.ErrBusy, wmi.ErrStuck, wmi.ErrClosed} {
		full := fmt.Errorf("query MSFT_Disk: never begun: %w", why)
		d, f := newDisks(t)
		f.fails["MSFT_Disk"] = full
		_, err := d.DiskSize(t.Context(), 1)
		wants(t, err, handler.ErrUnavailable, why.Error())
		if strings.Contains(err.Error(), handler.ErrUnavailable.Error()) {
			t.Errorf("the kind stands in the text: %v", err)
		}
		d, f = newDisks(t)
		f.fails["MSFT_Disk.Offline"] = full
		wants(t, d.SetDiskOnline(t.Context(), 1, false, handler.Permits{}), handler.ErrUnavailable, why.Error())
	}
	given := fmt.Errorf("call MSFT_Disk.Offline: given up, %w", wmi.ErrOutcome)
	if err := refused(given); errors.Is(err, handler.ErrUnavailable) {
		t.Errorf("a call whose outcome is not known is said not to have begun: %v", err)
	}
}
