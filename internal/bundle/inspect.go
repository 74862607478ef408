package bundle

import (
	"fmt"
	"strings"

	opa "github.com/open-policy-agent/opa/v1/bundle"
)

// Inspect reads what an archive says of itself, without asking whether it is true. It is for people, never for decisions.
func Inspect(raw []byte) (Bundle, KeyID, error) {
	files, err := unpack(raw)
	if err != nil {
		return Bundle{}, "", err
	}
	var signatures opa.SignaturesConfig
	var claimed header
	if err := decode(files[signaturesFile], &signatures); err != nil {
		return Bundle{}, "", refuse(ReasonUnsigned, fmt.Errorf("%s: %w", signaturesFile, err))
	}
	if len(signatures.Signatures) == 1 {
		head, _, _ := strings.Cut(signatures.Signatures[0], ".")
		text, err := encoding.DecodeString(head)
		if err == nil {
			err = decode(text, &claimed)
		}
		if err != nil {
			return Bundle{}, "", refuse(ReasonSignature, fmt.Errorf("header of the token: %w", err))
		}
	}
	b, err := fromFiles(files)
	if err != nil {
		return Bundle{}, "", refuse(ReasonContent, err)
	}
	return b, claimed.KeyID, nil
}
