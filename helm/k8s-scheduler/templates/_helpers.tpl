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

{{/* Ending of the names of cluster-scoped objects: releases of one name in two namespaces share none.
     A namespace has no dot in it, so no two releases end up with the same name. */}}
{{- define "k8s-scheduler.clusterSuffix" -}}
.{{ .Release.Namespace }}
{{- end -}}

{{- define "k8s-scheduler.clusterName" -}}
{{ include "k8s-scheduler.fullname" . }}{{ include "k8s-scheduler.clusterSuffix" . }}
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

{{/* A digest goes before the tag, which then only says to readers what it is. */}}
{{- define "k8s-scheduler.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{/* "true" if a plugin is surely off in every profile, at one point (preBind) or at all points ("").
     What is not sure counts as on: a right too many is better than a scheduler that stands still. */}}
{{- define "k8s-scheduler.isOff" -}}
{{- $off := true -}}
{{- $name := .plugin -}}
{{- $point := .point -}}
{{- range (.profiles | default (list dict)) -}}
{{-   $plugins := .plugins | default dict -}}
{{-   $disabled := (($plugins.multiPoint | default dict).disabled | default list) -}}
{{-   if $point -}}
{{-     $disabled = concat $disabled ((get $plugins $point | default dict).disabled | default list) -}}
{{-   end -}}
{{-   $here := false -}}
{{-   range $disabled -}}
{{-     if has .name (list $name "*") -}}{{- $here = true -}}{{- end -}}
{{-   end -}}
{{-   range $set := $plugins -}}
{{-     range (($set | default dict).enabled | default list) -}}
{{-       if eq .name $name -}}{{- $here = false -}}{{- end -}}
{{-     end -}}
{{-   end -}}
{{-   if not $here -}}{{- $off = false -}}{{- end -}}
{{- end -}}
{{- if $off -}}true{{- end -}}
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
