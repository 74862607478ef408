package query

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// Two places read what Windows has before a drive or a share: pipepath, which decides what a pod mounts, and the search for a path in the log, which finds too
// much rather than too little. What the one takes for a drive or a share, the other finds by that name.
func TestWhatIsADriveOrAShareIsFoundByItsName(t *testing.T) {
	beginnings := []string{`\\.\`, `\\?\`, `\??\`, `\DosDevices\`, `\Global??\`, `\\.\Global\`, `\\?\GLOBALROOT\`, `\Device\Mup\`, `\Device\LanmanRedirector\`, `\\`, `\`, ``}
	between := []string{``, ``, ``, `Global\`, `GLOBALROOT\`, `??\`, `DosDevices\`, `Global??\`, `UNC\`, `Device\Mup\`, `Device\LanmanRedirector\`, `;x\`, `\`, `.\`, ` \`, `Device\DfsClient\`, `Device\vmsmb\`, `Sessions\1\DosDevices\`}
	ends := []string{`C:\kubelet\plugins\a`, `c:\Kubelet\plugins`, `C:/kubelet//plugins`, `C:\kubelet.\plugins`, `host\share\kubelet\plugins`, `host\share\x`}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	drives, shared, missed := 0, 0, map[string]string{}
	for range 200_000 {
		path := pick(beginnings) + pick(between) + pick(between) + pick(between) + pick(ends)
		if r.IntN(3) == 0 {
			path = strings.ToUpper(path)
		}
		if r.IntN(4) == 0 {
			path = strings.Replace(path, `\`, `/`, 1+r.IntN(3))
		}
		name := pipepath.Canonical(path)
		switch name.Kind {
		case pipepath.KindDrive:
			drives++
		case pipepath.KindUNC:
			shared++
		default:
			continue
		}
		if !below(path, name.Canonical) && len(missed) < 60 {
			missed[path] = name.Canonical
		}
	}
	if drives < 10_000 || shared < 10_000 {
		t.Errorf("only %d drives and %d shares", drives, shared)
	}
	for path, name := range missed {
		t.Errorf("%s is %s, and is not found by that", path, name)
	}
}
