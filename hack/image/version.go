package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// release is a version that is a tag of an image too, behind its v.
var release = regexp.MustCompile(`(?m)^appVersion: (v[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]{1,100})?)$`)

// chartVersion is the release that the chart below source is of, such as v1.2.3: its appVersion. Images are of the same, and so
// the chart finds them by its default tag.
func chartVersion(source string) (string, error) {
	file := filepath.Join(source, "charts", "pipeguard", "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	match := release.FindAllSubmatch(text, -1)
	if len(match) != 1 {
		return "", fmt.Errorf("%s: want one line appVersion: vMAJOR.MINOR.PATCH, with a -PRERELEASE if there is one", file)
	}
	return string(match[0][1]), nil
}
