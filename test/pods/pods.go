// Package pods holds the pods that tests and benchmarks judge.
package pods

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Driver is close to what the azuredisk DaemonSet makes on a Windows node: its six pipes, and what the API server adds.
func Driver(t testing.TB) *corev1.Pod {
	t.Helper()
	p := Plain(t)
	p.Name, p.Namespace, p.GenerateName = "csi-azuredisk-node-win-7xk2p", "kube-system", "csi-azuredisk-node-win-"
	p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = "csi-azuredisk-node-sa", "csi-azuredisk-node-sa"
	p.Spec.Containers[0].Name = "azuredisk"
	for _, name := range []string{
		"filesystem-v1", "disk-v1", "volume-v1", "filesystem-v1beta1", "disk-v1beta2", "volume-v1beta2",
	} {
		volume, path := "csi-proxy-"+name, `\\.\pipe\csi-proxy-`+name
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: new(corev1.HostPathUnset)}}})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
	return p
}

// Plain is a pod of two containers as the API server sends it to a webhook, with its history and without any host path.
func Plain(t testing.TB) *corev1.Pod { return decoded(t, plain) }

// Running is Plain as a list of the API server holds it: a node runs it, and its kubelet has written its status.
func Running(t testing.TB) *corev1.Pod { return running(t, Plain(t)) }

// RunningDriver is Driver in the same state.
func RunningDriver(t testing.TB) *corev1.Pod { return running(t, Driver(t)) }

func running(t testing.TB, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	state := decoded(t, started)
	p.ResourceVersion, p.Spec.NodeName, p.Status = "4711", "node-1", state.Status
	p.ManagedFields = append(p.ManagedFields, state.ManagedFields...)
	return p
}

func decoded(t testing.TB, text string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

const plain = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-5d8f9c7b6-x2x4z","generateName":"web-5d8f9c7b6-","namespace":"shop",
"uid":"0b8f8a52-6a0c-4f0e-a8f0-2b9f2f5f7c11","creationTimestamp":"2026-03-04T05:06:07Z",
"labels":{"app":"web","app.kubernetes.io/name":"web","app.kubernetes.io/part-of":"shop","pod-template-hash":"5d8f9c7b6"},
"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"9090","example.com/start":"sh -c \"a \u0026\u0026 b \u003e /dev/null\""},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d8f9c7b6","uid":"5a53fbc7-6f0e-4b54-9b2f-51d2ae4b1f01","controller":true,"blockOwnerDeletion":true}],
"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-03-04T05:06:07Z","fieldsType":"FieldsV1",
"fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},
"f:ownerReferences":{".":{},"k:{\"uid\":\"5a53fbc7-6f0e-4b54-9b2f-51d2ae4b1f01\"}":{}}},
"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"MODE\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},
"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},
"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}}]},
"spec":{"volumes":[{"name":"kube-api-access-8k4bz","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}},
{"name":"cache","emptyDir":{}},{"name":"settings","configMap":{"name":"web-settings","defaultMode":420}}],
"containers":[{"name":"web","image":"registry.example.com/shop/web:1.24.3","args":["--listen=:8080","--log-level=info","--upstream=http://catalog.shop.svc:8080"],
"ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"MODE","value":"production"},{"name":"POD_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}},
{"name":"SHOP_CATALOG","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"catalog"}}},
{"name":"SHOP_CART","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"cart"}}},
{"name":"SHOP_CHECKOUT","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"checkout"}}},
{"name":"SHOP_PAYMENT","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"payment"}}},
{"name":"SHOP_SEARCH","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"search"}}},
{"name":"SHOP_SESSION","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"session"}}},
{"name":"SHOP_REGION","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"region"}}},
{"name":"SHOP_CURRENCY","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"currency"}}},
{"name":"SHOP_FEATURE_FLAGS","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"feature_flags"}}},
{"name":"SHOP_LOG_FORMAT","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"log_format"}}},
{"name":"SHOP_TRACE_RATIO","valueFrom":{"configMapKeyRef":{"name":"web-settings","key":"trace_ratio"}}}],
"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"100m","memory":"256Mi"}},
"volumeMounts":[{"name":"cache","mountPath":"/var/cache/web"},{"name":"settings","readOnly":true,"mountPath":"/etc/web"},{"name":"kube-api-access-8k4bz","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"initialDelaySeconds":5,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent",
"securityContext":{"capabilities":{"drop":["ALL"]},"runAsNonRoot":true,"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}},
{"name":"metrics","image":"registry.example.com/shop/metrics:0.9","ports":[{"containerPort":9090,"protocol":"TCP"}],"resources":{},
"volumeMounts":[{"name":"kube-api-access-8k4bz","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","securityContext":{},"schedulerName":"default-scheduler",
"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"podAffinityTerm":{"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"kubernetes.io/hostname"}}]}},
"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],
"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Pending","qosClass":"Burstable"}}`

// started is what a kubelet adds to a pod of two containers.
const started = `{"metadata":{"managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-03-04T05:06:31Z","fieldsType":"FieldsV1","subresource":"status",
"fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},
"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},
"k:{\"type\":\"PodReadyToStartContainers\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},
"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},
"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.3.17\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}}]},
"status":{"phase":"Running","conditions":[
{"type":"PodReadyToStartContainers","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:30Z"},
{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:07Z"},
{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:31Z"},
{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:31Z"},
{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:07Z"}],
"hostIP":"10.0.0.4","hostIPs":[{"ip":"10.0.0.4"}],"podIP":"10.0.3.17","podIPs":[{"ip":"10.0.3.17"}],"startTime":"2026-03-04T05:06:07Z",
"containerStatuses":[{"name":"metrics","state":{"running":{"startedAt":"2026-03-04T05:06:30Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example.com/shop/metrics:0.9",
"imageID":"registry.example.com/shop/metrics@sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b",
"containerID":"containerd://9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","started":true},
{"name":"web","state":{"running":{"startedAt":"2026-03-04T05:06:30Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example.com/shop/web:1.24.3",
"imageID":"registry.example.com/shop/web@sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
"containerID":"containerd://fd61a03af4f77d870fc21e05e7e80678095c92d808cfb3b5c279ee04c74aca13","started":true}],
"qosClass":"Burstable"}}`
