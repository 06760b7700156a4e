{{- define "joiner.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "joiner.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "joiner.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "joiner.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "joiner.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "joiner.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "joiner.selectorLabels" -}}
app.kubernetes.io/name: {{ include "joiner.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The metadata that every object has; called with a dictionary of the root and the name. */}}
{{- define "joiner.metadata" -}}
name: {{ .name }}
labels:
  helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
  {{- include "joiner.selectorLabels" .root | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  {{- with .root.Values.additionalLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := merge (dict) (default (dict) .annotations) .root.Values.additionalAnnotations }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "joiner.image" -}}
{{- $image := .Values.controller.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The provider whose permissions are granted. */}}
{{- define "joiner.provider" -}}
{{- if .Values.settings.provider -}}{{ .Values.settings.provider }}{{- else if .Values.settings.clusterName -}}aws{{- else -}}kwok{{- end -}}
{{- end -}}

{{/* Feature gates as one text: Name=true,Other=false. */}}
{{- define "joiner.featureGates" -}}
{{- $gates := list -}}
{{- range $name, $on := .Values.settings.featureGates -}}
{{- $gates = append $gates (printf "%s%s=%t" (upper (substr 0 1 $name)) (substr 1 -1 $name) $on) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{/* The settings that are given, by the name of their environment variable. What is empty is left to Joiner. */}}
{{- define "joiner.settings" -}}
{{- $names := dict "batchMaxDuration" "BATCH_MAX_DURATION" "batchIdleDuration" "BATCH_IDLE_DURATION" "preferencePolicy" "PREFERENCE_POLICY" "minValuesPolicy" "MIN_VALUES_POLICY" "planningPolicy" "PLANNING_POLICY" "schedulerConfig" "SCHEDULER_CONFIG" "disableClusterStateObservability" "DISABLE_CLUSTER_STATE_OBSERVABILITY" -}}
{{- if ne (include "joiner.provider" .) "kwok" -}}
{{- $names = merge $names (dict "clusterName" "CLUSTER_NAME" "clusterEndpoint" "CLUSTER_ENDPOINT" "clusterCABundle" "CLUSTER_CA_BUNDLE" "interruptionQueue" "INTERRUPTION_QUEUE" "isolatedVPC" "ISOLATED_VPC" "vmMemoryOverheadPercent" "VM_MEMORY_OVERHEAD_PERCENT" "reservedENIs" "RESERVED_ENIS" "disableDryRun" "DISABLE_DRY_RUN") -}}
{{- end -}}
{{- $given := dict -}}
{{- range $name, $variable := $names -}}
{{- $value := toString (index $.Values.settings $name) -}}
{{- if not (has $value (list "" "false" "<nil>")) -}}
{{- $_ := set $given $variable $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $given -}}
{{- end -}}
