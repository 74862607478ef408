package scan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// form is how the parts of a report are written as objects. Every form has a kind with a namespace and one without.
type form struct {
	namespaced, cluster kind
	// selector selects the objects that are listed, by their labels; "" lists all. It may leave out others' alone: that the name of a
	// report is taken is then found when it is created.
	selector string
	// documents puts all parts of one report into the form, in order.
	documents func(parts []v1alpha1.Report) []document
	// decode reads what an object of the form says.
	decode func(raw []byte) (document, error)
}

// document is what one object of a form says.
type document interface {
	// timeless is all that it says, except when it began to say so: two documents that are alike in it need no write.
	timeless() any
	// object is the object that says so, since a time.
	object(metav1.TypeMeta, metav1.ObjectMeta, time.Time) any
}

func (f *form) kinds() [2]kind { return [2]kind{f.namespaced, f.cluster} }

// kindOf is the kind of the reports of a namespace, or of the objects without one if it is "".
func (f *form) kindOf(namespace string) kind {
	if namespace == "" {
		return f.cluster
	}
	return f.namespaced
}

// digest stands for the content of a report.
type digest [sha256.Size]byte

// contentOf stands for all that a report says, except when it began to say so.
func contentOf(d document) (digest, error) {
	text, err := json.Marshal(d.timeless())
	if err != nil {
		return digest{}, fmt.Errorf("encode a report: %w", err)
	}
	return sha256.Sum256(text), nil
}

// ownForm writes PipeReports and ClusterPipeReports.
func ownForm() form {
	return form{
		namespaced: reportKind(), cluster: clusterReportKind(),
		documents: func(parts []v1alpha1.Report) []document {
			out := make([]document, len(parts))
			for i, part := range parts {
				out[i] = ownReport(part)
			}
			return out
		},
		decode: func(raw []byte) (document, error) {
			var r v1alpha1.PipeReport // a ClusterPipeReport has the same shape
			err := json.Unmarshal(raw, &r)
			return ownReport(r.Report), err
		},
	}
}

// ownReport is the document of a PipeReport.
type ownReport v1alpha1.Report

func (r ownReport) timeless() any {
	r.ScannedAt = metav1.Time{}
	return v1alpha1.Report(r)
}

func (r ownReport) object(kind metav1.TypeMeta, meta metav1.ObjectMeta, at time.Time) any {
	r.ScannedAt = metav1.Time{Time: at}
	return &v1alpha1.PipeReport{TypeMeta: kind, ObjectMeta: meta, Report: v1alpha1.Report(r)}
}
