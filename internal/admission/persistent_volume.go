package admission

import (
	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// persistentVolume is what is read of a PersistentVolumeSpec: where it leads on a node, and who gets it.
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
type claimRef struct{ namespace, name, uid string }

func readPersistentVolume(r *jsonscan.Reader, obj *object) {
	v := &obj.volume
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "hostPath":
			o.Once(0)
			v.source(r, "hostPath")
		case "local":
			o.Once(1)
			v.source(r, "local")
		case "claimRef":
			o.Once(2)
			v.claim = readClaimRef(r)
		default:
			r.Skip()
		}
	}
}

func (v *persistentVolume) source(r *jsonscan.Reader, kind string) {
	if r.Null() {
		return
	}
	v.sources = append(v.sources, volumeSource{kind: kind, path: readHostPath(r)}) // both sources have the same key for it
}

func readClaimRef(r *jsonscan.Reader) (c claimRef) {
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "namespace":
			o.Once(0)
			c.namespace = r.String()
		case "name":
			o.Once(1)
			c.name = r.String()
		case "uid":
			o.Once(2)
			c.uid = r.String()
		default:
			r.Skip()
		}
	}
	return c
}
