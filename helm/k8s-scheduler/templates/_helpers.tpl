{{/* Name of every object. 47 leaves room for "-leader-election" within 63. */}}
{{- define "k8s-scheduler.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 47 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "k8s-scheduler.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "k8s-scheduler.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.create: false needs serviceAccount.name" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* What the Deployment and the Service select by: it can never change in an upgrade. */}}
{{- define "k8s-scheduler.selectorLabels" -}}
app: {{ .Chart.Name }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "k8s-scheduler.labels" -}}
{{ include "k8s-scheduler.selectorLabels" . }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The same for the shadow, which is another component. */}}
{{- define "k8s-scheduler.shadowSelectorLabels" -}}
app: {{ .Chart.Name }}-shadow
app.kubernetes.io/component: shadow
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "k8s-scheduler.shadowLabels" -}}
{{ include "k8s-scheduler.shadowSelectorLabels" . }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "k8s-scheduler.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* Where the daemon reads its configuration. */}}
{{- define "k8s-scheduler.configFlag" -}}
{{- if .Values.configFromApi -}}
--config-map=$(POD_NAMESPACE)/{{ include "k8s-scheduler.fullname" . }}:config.yaml
{{- else -}}
--config=/etc/kubernetes/k8s-scheduler/config.yaml
{{- end -}}
{{- end -}}

{{/* Where the serving certificate is mounted. */}}
{{- define "k8s-scheduler.tlsPath" -}}
/etc/kubernetes/k8s-scheduler-tls
{{- end -}}
