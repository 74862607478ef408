// Package version identifies the build.
// The number is that of the chart, and so of the images that the chart names; the toolchain's own record supplies the commit.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// number is appVersion of charts/pipeguard/Chart.yaml, from which hack/image names the archives and the tags in them.
const number = "v0.1.0-dev"

// Number is the release of this build, for example "v0.1.0".
func Number() string { return number }

// String names the program, its release, the commit it was built from where the toolchain recorded one,
// the Go release and the platform, in one line.
func String(program string) string {
	commit := "unknown commit"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	return fmt.Sprintf("%s %s (%s, %s, %s/%s)", program, number, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
