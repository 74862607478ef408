package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

// A guard that answers otherwise than the story tells leaves no log that somebody could take for the story's.
func TestTheStoryNoticesAnotherAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		scene scene
		says  string // empty: the scene is as it should be
	}{
		"as it should be":                 {scene{at: "08:00", who: reportRunner, pipe: "disk-v1", calls: []call{{"PartitionDisk", object{"diskNumber": 3}, codes.PermissionDenied}}}, ""},
		"a denial that was to be none":    {scene{at: "08:00", who: reportRunner, pipe: "disk-v1", calls: []call{{"PartitionDisk", object{"diskNumber": 3}, codes.OK}}}, "PermissionDenied"},
		"an answer that was to be denied": {scene{at: "08:00", who: diskDriver, pipe: "disk-v1", calls: []call{{"ListDiskLocations", nil, codes.PermissionDenied}}}, "the answer is OK"},
		"a request of another shape":      {scene{at: "08:00", who: diskDriver, pipe: "disk-v1", calls: []call{{"PartitionDisk", object{"volume": "x"}, codes.OK}}}, "unknown field"},
		"a pipe that there is not":        {scene{at: "08:00", who: diskDriver, pipe: "disk-v9"}, "no such pipe"},
		"a time that is none":             {scene{at: "8 o'clock", who: diskDriver, pipe: "disk-v1"}, "parsing time"},
		"a list that there is not":        {scene{at: "08:00", list: "rules/none.yaml", who: diskDriver, pipe: "disk-v1"}, "none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := setStage(filepath.Join(t.TempDir(), "run"))
			if err != nil {
				t.Fatal(err)
			}
			n := &node{clock: &clock{}, out: io.Discard}
			err = n.play(t.Context(), act{"08:00", []scene{c.scene}}, s.places, s.witness.witnessing)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if err := s.witness.close(); err != nil {
				t.Error(err)
			}
		})
	}
}
