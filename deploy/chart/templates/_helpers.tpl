{{- define "rollcall.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "rollcall.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* The services of each Deployment of the control plane, by its name. */}}
{{- define "rollcall.components" -}}
{{- if eq .Values.layout "together" -}}
api: [registry, health-query, admin, scheduler]
{{- else -}}
registry: [registry]
admin: [admin]
scheduler: [scheduler]
{{- end }}
health: [health]
{{- if .Values.console.enabled }}
console: [console]
{{- end }}
{{- end }}

{{/* Where the console passes calls on to. */}}
{{- define "rollcall.upstreamEnv" -}}
{{- $base := printf "%s://%s" (ternary "https" "http" .Values.tls.enabled) (include "rollcall.name" .) -}}
{{- if eq .Values.layout "together" -}}
- { name: ROLLCALL_CONSOLE_UPSTREAM, value: {{ $base }}-api.{{ .Release.Namespace }}.svc:7700 }
{{- else -}}
{{- range list "registry" "health" "admin" "scheduler" -}}
- { name: ROLLCALL_CONSOLE_{{ upper . }}UPSTREAM, value: {{ $base }}-{{ . }}.{{ $.Release.Namespace }}.svc:7700 }
{{ end -}}
{{- end -}}
{{- end }}

{{/* Which Deployment answers for each service of the API. */}}
{{- define "rollcall.routes" -}}
{{- $together := eq .Values.layout "together" -}}
{{ $together | ternary "api" "registry" }}:
  - rollcall.registry.v1.RegistryService
  - rollcall.events.v1.EventService
{{- if not $together }}
health:
{{- end }}
  - rollcall.health.v1.HealthQueryService
{{- if not $together }}
admin:
{{- end }}
  - rollcall.admin.v1.AccessService
  - rollcall.admin.v1.AdminService
  - rollcall.admin.v1.AuditService
  - rollcall.admin.v1.BrakeService
  - rollcall.admin.v1.DeclaredStateService
  - rollcall.admin.v1.DiagnosisService
  - rollcall.admin.v1.HealthPolicyService
  - rollcall.admin.v1.JoinTokenService
  - rollcall.events.v1.WebhookService
{{- if not $together }}
scheduler:
{{- end }}
  - rollcall.scheduler.v1.JobService
{{- if .Values.console.enabled }}
console:
  - rollcall.console.v1.ConsoleService
{{- end }}
{{- end }}

{{/* What is read by plain HTTP, by the name of the Deployment that answers it. */}}
{{- define "rollcall.pages" -}}
{{ eq .Values.layout "together" | ternary "api" "registry" }}: [/v1/prometheus/sd, /openapi.json, /docs/api]
{{- end }}

{{- define "rollcall.registryName" -}}
{{ include "rollcall.name" . }}-{{ eq .Values.layout "together" | ternary "api" "registry" }}
{{- end }}

{{- define "rollcall.selector" -}}
app.kubernetes.io/name: rollcall
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "rollcall.labels" -}}
{{ include "rollcall.selector" . }}
app.kubernetes.io/part-of: rollcall
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* The values of a Deployment: those of all, and what it says otherwise. */}}
{{- define "rollcall.settings" -}}
{{- $own := index .root.Values .component | default dict -}}
{{- mustMergeOverwrite (deepCopy .root.Values.defaults) (deepCopy $own) | toYaml -}}
{{- end }}

{{/* The Job that migrates, without its name. */}}
{{- define "rollcall.migration" -}}
{{- $scope := dict "root" . "component" "migration" -}}
backoffLimit: 3
activeDeadlineSeconds: {{ .Values.migration.activeDeadlineSeconds }}
ttlSecondsAfterFinished: 86400
template:
  metadata:
    labels: {{- include "rollcall.labels" $scope | nindent 6 }}
  spec:
    restartPolicy: Never
    # The chart's own accounts are not there yet when this runs.
    automountServiceAccountToken: false
    enableServiceLinks: false
    securityContext: {{- include "rollcall.podSecurity" . | nindent 6 }}
    {{- with .Values.image.pullSecrets }}
    imagePullSecrets: {{- range . }}
      - name: {{ . }}
    {{- end }}
    {{- end }}
    containers:
      - name: migrate
        image: {{ include "rollcall.image" . }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        args: [migrate, --log-format=json]
        env: {{- include "rollcall.databaseEnv" . | nindent 10 }}
        resources: {{- toYaml .Values.migration.resources | nindent 10 }}
        securityContext: {{- include "rollcall.containerSecurity" . | nindent 10 }}
{{- end }}

{{- define "rollcall.tlsSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "rollcall.name" .)) }}
{{- end }}

{{- define "rollcall.databaseEnv" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
{{- if .Values.database.cloudNativePG.enabled }}
      name: {{ include "rollcall.name" . }}-postgres-app
      key: uri
{{- else }}
      name: {{ .Values.database.secretName }}
      key: {{ .Values.database.key }}
{{- end }}
{{- end }}

{{/* Nothing in a container gains or writes anything. */}}
{{- /* Flags of Node.js as the packages' launcher sets them, unless the pod's own variables have theirs. */}}
{{- define "rollcall.nodeOptions" -}}
{{- $isOwn := false }}
{{- range .env }}{{ if eq .name "NODE_OPTIONS" }}{{ $isOwn = true }}{{ end }}{{ end }}
{{- if not $isOwn }}
- { name: NODE_OPTIONS, value: {{ .flags }} }
{{- end }}
{{- end }}

{{- define "rollcall.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "rollcall.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "rollcall.agentAccount" -}}
{{ include "rollcall.name" . }}-agent
{{- end }}
