package admission

import (
	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// persistentVolume is what is read of a PersistentVolumeSpec: where it leads on a node, and its claim.
type persistentVolume struct {
	// sources has one entry in any volume that the API server takes.
	sources []volumeSource
	claim   claimRef
}

type volumeSource struct {
	kind string // hostPath or local
	path string
}

// claimRef names the claim that a volume is bound to, or promised to. Its uid comes with the binding.
type claimRef struct {
	Claim
	uid string
}

func readPersistentVolume(r *jsonscan.Reader, obj *object) {
	v := &obj.volume
	r.Members(
		jsonscan.Value("hostPath", func() { v.source(r, "hostPath") }),
		jsonscan.Value("local", func() { v.source(r, "local") }),
		jsonscan.Value("claimRef", func() { v.claim = readClaimRef(r) }),
	)
}

func (v *persistentVolume) source(r *jsonscan.Reader, kind string) {
	if r.Null() {
		return
	}
	v.sources = append(v.sources, volumeSource{kind: kind, path: readHostPath(r)}) // both sources have the same key for it
}

func readClaimRef(r *jsonscan.Reader) (c claimRef) {
	r.Members(jsonscan.Text("namespace", &c.Namespace), jsonscan.Text("name", &c.Name), jsonscan.Text("uid", &c.uid))
	return c
}
