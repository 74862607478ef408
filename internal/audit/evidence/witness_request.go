package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// maxProof is the longest consistency proof that the protocol allows, in hashes.
const maxProof = 63

// maxRequest bounds a request for a cosignature, in bytes.
const maxRequest = maxNote + (maxProof+2)*45 + 64

// request asks a witness to cosign a checkpoint. https://c2sp.org/tlog-witness
type request struct {
	old        uint64
	proof      tlog.TreeProof
	checkpoint []byte
}

func (r request) encode() []byte {
	out := appendHashes(fmt.Appendf(nil, "old %d\n", r.old), r.proof)
	return append(append(out, '\n'), r.checkpoint...)
}

// parseRequest reads a request strictly; the checkpoint in it is not looked at.
func parseRequest(body []byte) (request, error) {
	if len(body) > maxRequest {
		return request{}, fmt.Errorf("longer than %d bytes", maxRequest)
	}
	header, checkpoint, ok := bytes.Cut(body, []byte("\n\n"))
	if !ok {
		return request{}, errors.New("no empty line before the checkpoint")
	}
	lines := strings.Split(string(header), "\n")
	number, ok := strings.CutPrefix(lines[0], "old ")
	old, isNumber := parseNumber(number)
	if !ok || !isNumber {
		return request{}, errors.New("the first line is no old size")
	}
	if len(lines)-1 > maxProof {
		return request{}, fmt.Errorf("a proof of %d hashes, at most %d are read", len(lines)-1, maxProof)
	}
	r := request{old: old, checkpoint: checkpoint}
	for i, l := range lines[1:] {
		h, err := parseHash(l)
		if err != nil {
			return request{}, fmt.Errorf("line %d of the proof: %w", i+1, err)
		}
		r.proof = append(r.proof, h)
	}
	return r, nil
}
