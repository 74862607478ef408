package admission

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// A few bytes of a review can become kilobytes: a mount is 13 bytes in an object, and 2 KB with the terms of a policy's input. So whatever
// is made of a review is weighed right before it is made, and taken from what the review may take; so is the time that its paths take. Most take a few dozen kilobytes, and
// wait for nothing. One that would take more than a light review may is dropped, all but its body, and begun anew when it is its turn.
//
// Together they take 70 MiB at most for the light reviews in all 280 places, and 96 MiB for two heavy ones; 82 MiB for bodies, which the
// desk bounds; and what evaluations make, of which package policy has the bounds.
const (
	// lightReview is the most that a review takes which waits for nothing: one with 55 mounts of pipes, with 50 KiB of paths to be judged, or with 700 labels.
	lightReview = 256 << 10
	// heavyReview is the most that any takes: one with 10,000 mounts of pipes. What would take more is refused.
	heavyReview = 48 << 20
)

// Turns of heavy reviews. With more than half of the processors they would keep light ones waiting, and more than two at a time would
// need more memory whatever the number of processors. Addresses take them in turn, since only an API server tells the truth about tenants; its own are shared
// among these.
const (
	maxTurns     = 2
	waitForTurn  = 2 * time.Second // an API server waits for an answer for 10 s as a rule, and others of its reviews wait as well
	waitingTurns = 64
)

func turnsFor(processors int) *turns.Groups {
	return turns.NewGroups(min(max(processors/2, 1), maxTurns), waitingTurns, waitForTurn)
}

// What things take in memory, in bytes, from the first string to the last term, beside the length of their texts. These are upper bounds,
// and a test holds them to what is there.
const (
	memberWeight    = 320  // a label or an annotation
	groupWeight     = 160  // a group of the user
	containerWeight = 1280 // a container, without mounts
	volumeWeight    = 112  // a hostPath volume that leads to nothing
	mountWeight     = 112  // a mount of something that leads to nothing
	entryWeight     = 4096 // a mount, or a volume, that has an entry in the input, with what is found about it
	policyWeight    = 128  // a policy in a list that was made for one entry
	accessWeight    = 6144 // what policies say of a container and a pipe
	valueWeight     = 256  // a value of an object that policies read as a whole
)

// pathWeight is what a unit of work on paths takes, which is time: a light review has a few milliseconds of it.
const pathWeight = 4

// inputWeight is what an input takes as terms beside what was weighed when it was read: the labels of the namespace, and the object if policies
// read the whole of it. Each value of an object follows a bracket, a comma or a colon.
func inputWeight(in *Input, raw []byte, whole bool) int {
	labels := memberWeight * len(in.NamespaceLabels)
	if !whole {
		return labels
	}
	values := 1
	for _, c := range []byte("[{,:") {
		values += bytes.Count(raw, []byte{c})
	}
	return labels + values*valueWeight + 3*len(raw)
}

var (
	errTooHeavy = errors.New("what is made of it to judge it would take too much memory")
	errNoTurn   = errors.New("too many reviews at once that are large or take much memory; try again")
)

// unreadable is the failure of what could not be read or extracted.
func unreadable(err error) *failure {
	if errors.Is(err, jsonscan.ErrAllowance) {
		return tooHeavy()
	}
	return cannotJudge(ReasonObject, http.StatusBadRequest, err)
}

func tooHeavy() *failure { return cannotJudge(ReasonSize, http.StatusForbidden, errTooHeavy) }
