// Package sigma holds the detection rules that come with pipeguard, for "pipeguard audit hunt" and for other systems.
// They are data: package hunt says what they mean.
package sigma

import "embed"

// Rules are the rules, *.yml.
//
//go:embed *.yml
var Rules embed.FS
