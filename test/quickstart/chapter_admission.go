package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

// admission tells what the webhook refuses and admits.
func admission(ctx context.Context, s *story, api *apiServer) {
	s.chapter("Admission: which pods get a pipe")
	s.printf("AdmissionReviews go to the webhook over TLS; its answers are printed as kubectl would print them.\n")

	// create shows the answer to the creation of a pod and checks it.
	create := func(title, why, file string, check func(*admissionv1.AdmissionResponse) error) {
		s.step(title, why, func() error {
			r, err := api.create(ctx, file)
			if err != nil {
				return err
			}
			s.show("$ kubectl apply -f " + file + "\n" + kubectl(fmt.Sprintf("error when creating %q: ", file), r))
			return check(r)
		})
	}

	create("An application pod asks for a pipe",
		`The pod "web" mounts \\.\pipe\csi-proxy-disk-v1, behind which CSI Proxy partitions and formats disks of the
		node as SYSTEM. It is no storage driver: it is refused, with the field, the reason and what to do.`,
		"web-with-pipe.yaml",
		func(r *admissionv1.AdmissionResponse) error {
			return refused(r, "PG001", "csi-proxy-disk-v1", "iis", "spec.containers[0].volumeMounts[1]")
		})

	create("The same pipe in another spelling",
		`Windows reaches the same pipe by many names. This one goes through \GLOBALROOT and the NT device, in mixed case, with
		doubled slashes and a dot at the end, in an init container. No comparison of strings finds it; the canonical form does.`,
		"evasive-spelling.yaml",
		func(r *admissionv1.AdmissionResponse) error {
			return refused(r, "PG001", `\\.\pipe\csi-proxy-disk-v1`, "warm-up", "spec.initContainers[0]")
		})

	create("A pipe put together from volume and subPath",
		`The volume is the directory of all pipes, on localhost as if that were another machine; the subPath picks the pipe.
		A path that names no single pipe is refused everywhere, in allowed namespaces too.`,
		"hidden-in-subpath.yaml",
		func(r *admissionv1.AdmissionResponse) error {
			return refused(r, "PG003", "subPath", `\\localhost\pipe`)
		})

	create("A privileged pod",
		`The default rule lets privileged containers have a pipe. On Windows that field has no effect and its author
		sets it himself, so the pod is admitted with a warning; the parameter "requirement" can forbid it.`,
		"privileged.yaml",
		func(r *admissionv1.AdmissionResponse) error {
			if err := admitted(r, 1); err != nil {
				return err
			}
			if !strings.Contains(r.Warnings[0], "PG004") {
				return fmt.Errorf("the warning is not PG004: %q", r.Warnings[0])
			}
			return nil
		})

	s.step("kubectl debug on that pod",
		`Someone adds an ephemeral container to the running pod, which mounts the pipe that the pod already has. It is not
		privileged, so it is refused: an update of a pod is judged like its creation.`,
		func() error {
			r, err := api.debug(ctx, "privileged.yaml", "debug-container.yaml")
			if err != nil {
				return err
			}
			s.show("$ kubectl debug disk-maintenance --custom=debug-container.yaml …\n" + kubectl("", r))
			return refused(r, "PG001", "debugger-x7k2p", "spec.ephemeralContainers[0]")
		})

	create("A CSI driver's pod",
		`The Azure Disk driver mounts six pipes. Its service account in kube-system is listed in the parameters, so it is
		admitted, without a warning. kube-system as such is not exempt.`,
		"driver.yaml",
		func(r *admissionv1.AdmissionResponse) error { return admitted(r, 0) })

	create("A HostProcess driver",
		`The SMB driver runs on the node itself, and opens pipes without a mount. HostProcess containers are denied; this one is
		a subject of a PipePolicy by service account, container, image and Windows account, so it is admitted.`,
		"host-driver.yaml",
		func(r *admissionv1.AdmissionResponse) error { return admitted(r, 0) })

	create("An impostor under its service account",
		`Whoever can create pods in kube-system can use the driver's service account. The image is another, so it is refused, and
		told what the nearest subject wants.`,
		"host-impostor.yaml",
		func(r *admissionv1.AdmissionResponse) error {
			return refused(r, "PG005", "docker.io/evil/smbplugin", "registry.k8s.io/sig-storage/smbplugin:*", "spec.containers[0]")
		})

	create("An ordinary pod",
		`A pod whose hostPath is an ordinary directory is none of Pipeguard's business.`,
		"ordinary.yaml",
		func(r *admissionv1.AdmissionResponse) error { return admitted(r, 0) })

	s.step("A review that is none",
		`What cannot be understood is never admitted: broken JSON gets HTTP 400, and failurePolicy Fail makes that a refusal.`,
		func() error {
			status, text, err := api.post(ctx, []byte(`{"kind": "AdmissionReview", "request": {`))
			if err != nil {
				return err
			}
			s.show(fmt.Sprintf("HTTP %d %s\n%s", status, http.StatusText(status), strings.TrimSpace(string(text))))
			if status != http.StatusBadRequest {
				return errors.New("it was not refused with 400")
			}
			return nil
		})
}
