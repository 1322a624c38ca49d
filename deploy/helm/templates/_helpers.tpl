{{- define "esker.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "esker.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Labels by which the pods of a part are found: (list $ "server") */}}
{{- define "esker.selector" -}}
app.kubernetes.io/name: esker
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "esker.labels" -}}
{{ include "esker.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end -}}

{{- define "esker.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "esker.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The environment of servers and workers. */}}
{{- define "esker.environment" -}}
- {name: ESKER_DATABASE_URL, value: {{ .Values.database.url | quote }}}
{{- with .Values.database.directUrl }}
- {name: ESKER_DATABASE_DIRECT_URL, value: {{ . | quote }}}
{{- end }}
- {name: ESKER_DATABASE_PASSWORD_FILE, value: /run/secrets/esker/password}
- {name: ESKER_HOST, value: 0.0.0.0}
- {name: ESKER_WORKER, value: "false"}
- {name: ESKER_ALLOWED_HOSTS, value: {{ prepend .Values.allowedHosts "localhost" | uniq | join "," | quote }}}
{{- if .Values.secret.llmApiKey }}
- {name: ESKER_LLM_API_KEY_FILE, value: /run/secrets/esker/llm-api-key}
{{- end }}
{{- if .Values.secret.embedderApiKey }}
- {name: ESKER_EMBEDDER_API_KEY_FILE, value: /run/secrets/esker/embedder-api-key}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{- define "esker.mounts" -}}
- {name: secrets, mountPath: /run/secrets/esker, readOnly: true}
- {name: tmp, mountPath: /tmp}
- {name: data, mountPath: /home/esker/.local/share/esker}
{{- end -}}

{{- define "esker.volumes" -}}
- name: secrets
  secret:
    secretName: {{ .Values.secret.name }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.secret.passwordKey }}, path: password}
{{- with .Values.secret.llmApiKey }}
      - {key: {{ . }}, path: llm-api-key}
{{- end }}
{{- with .Values.secret.embedderApiKey }}
      - {key: {{ . }}, path: embedder-api-key}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
- name: data
  emptyDir: {sizeLimit: 64Mi}
{{- end -}}

{{/* The environment of jobs that log in as the owner of the tables. */}}
{{- define "esker.ownerEnvironment" -}}
- {name: ESKER_DATABASE_URL, value: {{ .Values.database.ownerUrl | quote }}}
- {name: ESKER_DATABASE_PASSWORD_FILE, value: /run/secrets/esker/owner-password}
{{- end -}}

{{- define "esker.ownerMounts" -}}
- {name: secrets, mountPath: /run/secrets/esker, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "esker.ownerVolumes" -}}
- name: secrets
  secret:
    secretName: {{ .Values.secret.name }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.secret.ownerPasswordKey }}, path: owner-password}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end -}}

{{/* The node selector, tolerations and affinity of a part's pods. */}}
{{- define "esker.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
