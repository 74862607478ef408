package export

import (
	"slices"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestAPathIsOneEntryOfACell(t *testing.T) {
	cells := cellsOf(&audit.Event{Type: audit.TypeAdmission, What: &audit.What{Targets: []audit.Target{
		{Kind: "path", Value: `C:\a; pipe \\.\pipe\csi-proxy-disk-v1`}, {Kind: "path", Value: `C:\Program Files`},
	}}})
	if want := `path "C:\a; pipe \\.\pipe\csi-proxy-disk-v1"; path C:\Program Files`; !slices.Contains(cells, want) {
		t.Errorf("%q, want a cell %q", cells, want)
	}
}
