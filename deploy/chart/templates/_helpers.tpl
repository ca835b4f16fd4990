{{- define "rollcall.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* The prefix of all names, short enough for the longest suffix. */}}
{{- define "rollcall.fullname" -}}
{{- $name := include "rollcall.name" . -}}
{{- $default := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $default | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "rollcall.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* The services of each Deployment of the control plane, by the Deployment's name. */}}
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

{{/*
The addresses of the services, as variables: `all` names the one of all services in the layout together, and `each`, with
%s for the service, those in the layout apart.
*/}}
{{- define "rollcall.addressEnv" -}}
{{- $root := .root -}}
{{- $base := printf "%s://%s" (ternary "https" "http" $root.Values.tls.enabled) (include "rollcall.fullname" $root) -}}
{{- if eq $root.Values.layout "together" -}}
- { name: {{ .all }}, value: {{ $base }}-api.{{ $root.Release.Namespace }}.svc:7700 }
{{- else -}}
{{- $each := .each -}}
{{- range list "registry" "health" "admin" "scheduler" -}}
- { name: {{ upper . | printf $each }}, value: {{ $base }}-{{ . }}.{{ $root.Release.Namespace }}.svc:7700 }
{{ end -}}
{{- end -}}
{{- end }}

{{/* The Deployment that serves each service of the API. */}}
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

{{/* Paths that are served over plain HTTP, by the name of their Deployment. */}}
{{- define "rollcall.pages" -}}
{{ eq .Values.layout "together" | ternary "api" "registry" }}:
  - /v1/prometheus/sd
  - /join.sh
  - /v1/join/packages
  - /v1/join/package
  - /openapi.json
  - /docs/api
{{- end }}

{{- define "rollcall.registryName" -}}
{{ include "rollcall.fullname" . }}-{{ eq .Values.layout "together" | ternary "api" "registry" }}
{{- end }}

{{- define "rollcall.selector" -}}
app.kubernetes.io/name: {{ include "rollcall.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "rollcall.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{ include "rollcall.selector" . }}
app.kubernetes.io/part-of: rollcall
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* The values of a component's pods: the defaults with its own overrides, by default those under its name. */}}
{{- define "rollcall.settings" -}}
{{- $own := .own | default (index .root.Values .component) | default dict -}}
{{- mustMergeOverwrite (deepCopy .root.Values.defaults) (deepCopy $own) | toYaml -}}
{{- end }}

{{/* The labels and annotations of a component's pods; `annotations` are those that the chart itself sets. */}}
{{- define "rollcall.podMetadata" -}}
labels:
  {{- include "rollcall.labels" . | nindent 2 }}
  {{- with .settings.podLabels }}{{ toYaml . | nindent 2 }}{{ end }}
{{- with merge dict (.settings.podAnnotations | default dict) (.annotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The fields that all pods have, from `root` and `settings`. */}}
{{- define "rollcall.podFields" -}}
# Kubernetes mounts no token. Pods that need one get a projected token.
automountServiceAccountToken: false
enableServiceLinks: false
{{- $security := .settings.podSecurityContext }}
{{- if and .root.Values.openshift (ne .component "agent") }}
{{- $security = omit $security "runAsUser" "runAsGroup" "fsGroup" }}
{{- end }}
{{- with $security }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .settings.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The fields that all containers have, from `root` and `settings`; `image` replaces Rollcall's. */}}
{{- define "rollcall.containerFields" -}}
image: {{ .image | default (include "rollcall.image" .root) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with .settings.resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.securityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "rollcall.spread" -}}
{{- $scope := . -}}
{{- range .settings.topologySpreadConstraints }}
{{- $own := dict "matchLabelKeys" (list "pod-template-hash") "labelSelector" (dict "matchLabels" (include "rollcall.selector" $scope | fromYaml)) }}
- {{ merge dict . $own | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}

{{/* The Job that migrates the database, without its name. */}}
{{- define "rollcall.migration" -}}
{{- $scope := dict "root" . "component" "migration" -}}
{{- $settings := include "rollcall.settings" $scope | fromYaml -}}
{{- $_ := set $scope "settings" $settings -}}
backoffLimit: 3
activeDeadlineSeconds: {{ $settings.activeDeadlineSeconds }}
ttlSecondsAfterFinished: 86400
template:
  metadata: {{- include "rollcall.podMetadata" $scope | nindent 4 }}
  spec:
    restartPolicy: Never
    {{- if not .Values.serviceAccount.create }}
    serviceAccountName: {{ include "rollcall.account" . }}
    {{- end }}
    {{- include "rollcall.podFields" $scope | nindent 4 }}
    containers:
      - name: migrate
        args: [migrate, --log-format=json]
        env:
          {{- include "rollcall.databaseEnv" . | nindent 10 }}
          {{- with $settings.extraEnv }}{{ toYaml . | nindent 10 }}{{ end }}
        {{- include "rollcall.containerFields" $scope | nindent 8 }}
        {{- with $settings.extraVolumeMounts }}
        volumeMounts: {{- toYaml . | nindent 10 }}
        {{- end }}
    {{- with $settings.extraVolumes }}
    volumes: {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}

{{- define "rollcall.tlsSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "rollcall.fullname" .)) }}
{{- end }}

{{- define "rollcall.tokenSecret" -}}
{{ .Values.adminToken.secretName | default (printf "%s-admin-token" (include "rollcall.fullname" .)) }}
{{- end }}

{{- define "rollcall.databaseSecret" -}}
{{ .Values.database.secretName | default (printf "%s-database" (include "rollcall.fullname" .)) }}
{{- end }}

{{/* The data of a secret of the cluster, so that upgrades keep what the first installation created. */}}
{{- define "rollcall.keptData" -}}
{{- with lookup "v1" "Secret" .root.Release.Namespace .secret -}}
{{- .data | default dict | toYaml -}}
{{- end -}}
{{- end }}

{{/* The head of a secret that the chart creates. */}}
{{- define "rollcall.createdSecret" -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .secret }}
  labels: {{- include "rollcall.labels" . | nindent 4 }}
  annotations:
    # The database outlives the release, and so does what gives access to it.
    helm.sh/resource-policy: keep
{{- end }}

{{- define "rollcall.databaseEnv" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
{{- if .Values.database.cloudNativePG.enabled }}
      name: {{ include "rollcall.fullname" . }}-postgres-app
      key: uri
{{- else }}
      name: {{ include "rollcall.databaseSecret" . }}
      key: {{ .Values.database.key }}
{{- end }}
{{- end }}

{{- define "rollcall.tokenRef" -}}
{ secretKeyRef: { name: {{ include "rollcall.tokenSecret" . }}, key: {{ .Values.adminToken.key }} } }
{{- end }}

{{/* The authority of the control plane's certificate, as a volume without the key. */}}
{{- define "rollcall.authorityVolume" -}}
name: authority
secret: { secretName: {{ include "rollcall.tlsSecret" . }}, items: [{ key: ca.crt, path: ca.crt }] }
{{- end }}

{{/* The names of all Services, in the form without and with the namespace. */}}
{{- define "rollcall.serviceNames" -}}
{{- range $component, $services := include "rollcall.components" . | fromYaml }}
- {{ include "rollcall.fullname" $ }}-{{ $component }}
- {{ include "rollcall.fullname" $ }}-{{ $component }}.{{ $.Release.Namespace }}.svc
{{- end }}
{{- end }}

{{/* The names of the API outside the cluster. */}}
{{- define "rollcall.outsideNames" -}}
{{- concat .Values.gateway.hostnames .Values.gateway.grpcHostnames (list .Values.ingress.host .Values.ingress.grpcHost | compact) | toYaml -}}
{{- end }}

{{/* Sets the same flags of Node.js as the packages' launcher, unless the pod's own variables set NODE_OPTIONS. */}}
{{- define "rollcall.nodeOptions" -}}
{{- $isOwn := false }}
{{- range .env }}{{ if eq .name "NODE_OPTIONS" }}{{ $isOwn = true }}{{ end }}{{ end }}
{{- if not $isOwn }}
- { name: NODE_OPTIONS, value: {{ .flags }} }
{{- end }}
{{- end }}

{{- define "rollcall.account" -}}
{{ .Values.serviceAccount.name | default (include "rollcall.fullname" .) }}
{{- end }}

{{- define "rollcall.agentAccount" -}}
{{ .Values.agent.serviceAccount.name | default (printf "%s-agent" (include "rollcall.fullname" .)) }}
{{- end }}
