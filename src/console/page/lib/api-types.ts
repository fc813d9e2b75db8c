/** The types of the API, generated from its schemas by test/docs/reference.test.ts. */

export type ActivityEntry = {
  id: string;
  user: { first_name: string; email: string | null; is_system?: boolean };
  activity: "created" | "updated" | "deleted" | "restored" | "activated" | "deactivated" | "link_created" | "password_set" | "sign_in_failed";
  scope: string;
  item_id: string;
  detail: {
    changes: {
      type: string;
      action: "created" | "changed" | "deleted";
      field: string;
      before: unknown;
      after: unknown;
    }[];
    trigger: { [name: string]: unknown } | null;
    type: string | null;
    name: string;
    short_id: string | null;
    note?: string;
  };
  created_at: string;
};

export type ActivityPage = { results: ActivityEntry[]; next: string | null; previous: string | null; total_count: number };

export type Annotation = {
  id: number;
  content: string;
  date_marker: string;
  creation_type: "USR";
  scope: "project" | "dashboard" | "dashboard_item";
  dashboard_id: number | null;
  dashboard_name: string | null;
  dashboard_item: number | null;
  insight_short_id: string | null;
  insight_name: string | null;
  created_by: User | null;
  created_at: string;
  updated_at: string;
  deleted: boolean;
};

export type AnnotationPage = { count: number; next: string | null; previous: string | null; results: Annotation[] };

export type ApiFailure = { type: string; code: string; detail: string; attr: string | null; extra?: { [name: string]: unknown } };

export type Backup = {
  file: string;
  created_at: string;
  bytes: number;
  verified: boolean;
  encrypted: boolean;
  incremental: boolean;
  problem: string | null;
  version: string | null;
  events: number | null;
  projects: {
    project_id: number;
    name: string;
    events: number;
    persons: number;
    groups: number;
    flags: number;
    cohorts: number;
  }[];
  name: string;
  restore_command: string;
};

export type BackupJob = {
  id: string;
  kind: "create" | "verify";
  name: string | null;
  state: "running" | "done" | "failed";
  started_at: string;
  finished_at: string | null;
  step: string | null;
  done: number;
  total: number;
  error: string | null;
  result: { [name: string]: unknown } | null;
};

export type Backups = {
  destination: string;
  schedule: string | null;
  next_at: string | null;
  results: Backup[];
  jobs: BackupJob[];
};

export type BatchItem = {
  event: string;
  distinct_id: string;
  properties?: { [name: string]: unknown };
  timestamp?: string | number;
  uuid?: string;
} | { event: string; properties: { distinct_id: string }; timestamp?: string | number; uuid?: string };

export type BlastRadius = { users_affected: number; total_users: number; affected: number; total: number };

export type ChangeRequest = {
  id: number;
  flag_id: number | null;
  flag_key: string;
  cohort_id: number | null;
  cohort_name: string;
  affected_flags: string[];
  changes: { [name: string]: unknown };
  original: { [name: string]: unknown };
  version: number;
  note: string;
  state: "pending" | "applied" | "rejected" | "withdrawn";
  created_by: User | null;
  created_at: string;
  decided_by: User | null;
  decided_at: string | null;
  warnings?: string[];
};

export type ChangeRequestPage = { count: number; next: string | null; previous: string | null; results: ChangeRequest[] };

export type Cohort = {
  id: number;
  name: string;
  description: string;
  groups: unknown[];
  deleted: boolean;
  filters: { [name: string]: unknown };
  query: unknown;
  is_calculating: boolean;
  created_by: User | null;
  created_at: string;
  last_calculation: string | null;
  errors_calculating: number;
  count: number | null;
  is_static: boolean;
  experiment_set: number[];
};

export type CohortPage = { count: number; next: string | null; previous: string | null; results: Cohort[] };

export type ComputedQuery = {
  results: unknown;
  is_cached: boolean;
  last_refresh: string | null;
  columns?: string[];
  hasMore?: boolean;
  limit?: number;
  offset?: number;
  isEstimated?: boolean;
  previous?: unknown;
  dateFrom?: string;
  dateTo?: string;
  samplingRate?: unknown | null;
  usedPreAggregatedTables?: boolean;
};

export type Dashboard = {
  id: number;
  name: string;
  description: string;
  pinned: boolean;
  created_at: string;
  created_by: User | null;
  last_accessed_at: string | null;
  is_shared: boolean;
  deleted: boolean;
  creation_mode: string;
  tags: string[];
  restriction_level: 21 | 37;
  effective_restriction_level: 21 | 37;
  effective_privilege_level: 21 | 37;
  user_access_level: string;
  access_control_version: string;
};

export type DashboardPage = { count: number; next: string | null; previous: string | null; results: Dashboard[] };

export type DashboardWithTiles = Dashboard & {
  filters: { [name: string]: unknown };
  variables: { [name: string]: unknown };
  tiles: {
    id: number;
    layouts: { [name: string]: unknown };
    color: string | null;
    order: number;
    show_description: boolean | null;
    insight: Insight | null;
    text: { id: number; body: string } | null;
  }[];
};

export type Doctor = {
  ok: boolean;
  errors: number;
  warnings: number;
  findings: {
    check: "permissions" | "disk" | "clock" | "files" | "flags" | "events" | "fronts" | "journal" | "archive" | "backup" | "quarantine" | "port";
    level: "ok" | "warning" | "error";
    message: string;
    hint: string | null;
  }[];
};

export type EarlyAccessFeature = {
  id: string;
  name: string;
  description: string;
  stage: "draft" | "concept" | "alpha" | "beta" | "general-availability" | "archived";
  documentation_url: string;
  payload: { [name: string]: unknown };
  feature_flag: FeatureFlag;
  created_at: string;
  created_by: User | null;
};

export type EarlyAccessFeaturePage = { count: number; next: string | null; previous: string | null; results: EarlyAccessFeature[] };

export type Event = {
  id: string;
  uuid: string;
  event: string;
  distinct_id: string;
  timestamp: string;
  properties: { [name: string]: unknown };
  person: { [name: string]: unknown } | null;
  elements: { [name: string]: unknown }[];
  elements_chain: string;
  seq: number;
  historical: boolean;
};

export type EventDefinition = { id: string; name: string; created_at: string; last_seen_at: string };

export type EventDefinitionPage = { count: number; next: string | null; previous: string | null; results: EventDefinition[] };

export type EventPage = { next: string | null; results: Event[] };

export type Experiment = {
  id: number;
  name: string;
  description: string;
  type: "product" | "web";
  status: "draft" | "running" | "paused" | "stopped";
  feature_flag_key: string;
  feature_flag: FeatureFlag;
  tags: string[];
  parameters: { [name: string]: unknown };
  start_date: string | null;
  end_date: string | null;
  archived: boolean;
  deleted: boolean;
  metrics: { [name: string]: unknown }[];
  metrics_secondary: { [name: string]: unknown }[];
  saved_metrics: {
    id: number;
    experiment: number;
    saved_metric: number;
    metadata: { [name: string]: unknown };
    query: { [name: string]: unknown };
    name: string;
  }[];
  saved_metrics_ids: { id: number; metadata?: { [name: string]: unknown } | null }[];
  exposure_criteria: { [name: string]: unknown };
  exposure_cohort: unknown;
  stats_config: { [name: string]: unknown };
  only_count_matured_users: boolean;
  minimum_exposures: number;
  excluded_variants: string[];
  primary_metrics_ordered_uuids: string[] | null;
  secondary_metrics_ordered_uuids: string[] | null;
  running_time_calculation: { [name: string]: unknown };
  holdout_id: number | null;
  holdout: ExperimentHoldout | null;
  conclusion: "won" | "lost" | "inconclusive" | "stopped_early" | "invalid" | null;
  conclusion_comment: string | null;
  version: number;
  created_by: User | null;
  created_at: string;
  updated_at: string;
  user_access_level: string;
};

export type ExperimentHoldout = {
  id: number;
  name: string;
  description: string;
  filters: { [name: string]: unknown }[];
  created_by: User | null;
  created_at: string;
  updated_at: string;
};

export type ExperimentHoldoutPage = { count: number; next: string | null; previous: string | null; results: ExperimentHoldout[] };

export type ExperimentPage = { count: number; next: string | null; previous: string | null; results: Experiment[] };

export type ExperimentResults = {
  experiment_id: number;
  name: string;
  status: "draft" | "running" | "paused" | "stopped";
  start_date: string | null;
  end_date: string | null;
  computed_at: string | null;
  is_cached: boolean;
  sentence: string;
  warnings: { code: string; message: string }[];
  exposures: { [name: string]: unknown } | null;
  sample_ratio: { chi_squared: number; df: number; p_value: number; mismatch: boolean } | null;
  metrics: {
    uuid: string | null;
    name: string | null;
    metric_type: string | null;
    goal: string;
    role: "primary" | "secondary" | "guardrail";
    error: string | null;
    baseline: { [name: string]: unknown } | null;
    variant_results: { [name: string]: unknown }[];
    holdout: { [name: string]: unknown } | null;
    timeseries?: { [name: string]: unknown };
  }[];
};

export type ExperimentSavedMetric = {
  id: number;
  name: string;
  description: string;
  query: { [name: string]: unknown };
  tags: string[];
  created_by: User | null;
  created_at: string;
  updated_at: string;
};

export type ExperimentSavedMetricPage = { count: number; next: string | null; previous: string | null; results: ExperimentSavedMetric[] };

export type FeatureFlag = {
  id: number;
  key: string;
  name: string;
  filters: { [name: string]: unknown };
  rollout_percentage: number | null;
  active: boolean;
  deleted: boolean;
  ensure_experience_continuity: boolean | null;
  is_remote_configuration: boolean | null;
  has_encrypted_payloads: boolean | null;
  has_enriched_analytics: boolean | null;
  evaluation_runtime: "server" | "client" | "all" | null;
  bucketing_identifier: "distinct_id" | "device_id" | null;
  tags: string[];
  evaluation_tags: string[];
  evaluation_contexts: string[];
  experiment_set: number[];
  surveys: { [name: string]: unknown };
  features: { [name: string]: unknown };
  rollback_conditions: unknown;
  performed_rollback: boolean;
  creation_context: "feature_flags" | "experiments" | "surveys" | "early_access_features" | "web_experiments";
  analytics_dashboards: number[];
  usage_dashboard: number | null;
  version: number;
  created_by: User | null;
  created_at: string;
  last_modified_by: User | null;
  updated_at: string | null;
  last_called_at: string | null;
  is_simple_flag: boolean;
  local_evaluation_issues: string[];
  can_edit: boolean;
  user_access_level: "none" | "viewer" | "editor" | "manager" | null;
  status: "ACTIVE" | "INACTIVE" | "STALE" | "DELETED" | "UNKNOWN" | "ARCHIVED";
  warnings?: string[];
};

export type FeatureFlagPage = { count: number; next: string | null; previous: string | null; results: FeatureFlag[] };

export type FeatureFlagRoleAccess = {
  id: number;
  feature_flag: FeatureFlag;
  role: Role;
  role_id: string;
  added_at: string;
  updated_at: string;
};

export type FeatureFlagRoleAccessPage = { count: number; next: string | null; previous: string | null; results: FeatureFlagRoleAccess[] };

export type FlagDefinition = {
  id: number;
  team_id: number;
  name: string;
  key: string;
  filters: { [name: string]: unknown };
  deleted: boolean;
  active: boolean;
  ensure_experience_continuity: boolean;
  has_encrypted_payloads: boolean;
  version: number;
  evaluation_runtime: string;
  bucketing_identifier: string;
  evaluation_tags: string[];
  evaluation_contexts: string[];
  local_evaluation_issues?: string[];
};

export type FlagDefinitions = {
  flags: FlagDefinition[];
  group_type_mapping: { [name: string]: unknown };
  cohorts: { [name: string]: unknown };
  local_evaluation_issues: { [name: string]: unknown };
};

export type FlagDocument = {
  flagkeep_flags: number;
  group_types: { [name: string]: unknown };
  cohorts: { [name: string]: unknown }[];
  flags: { [name: string]: unknown }[];
  holdouts?: { [name: string]: unknown }[];
  saved_metrics?: { [name: string]: unknown }[];
  experiments?: { [name: string]: unknown }[];
  early_access_features?: { [name: string]: unknown }[];
  surveys?: { [name: string]: unknown }[];
};

export type FlagExplanation = {
  flag_key: string;
  flag_id: number | null;
  distinct_id: string;
  person: { uuid: string } | null;
  status: string;
  value: unknown;
  payload: string | null;
  reason: { code: string; condition_index: number | null; description: string } | null;
  failed: boolean;
  dependencies: { id: number | null; key: string | null; value: unknown }[];
  enrollment: { key: string; found: unknown; is_decisive: boolean } | null;
  super_condition: {
    index: number;
    outcome: string;
    identity: { kind: string; id: string } | null;
    filters: {
      type: string;
      key: string | null;
      operator: string;
      value: unknown;
      found: unknown;
      source: string;
      result: string;
      note: string | null;
    }[];
    rollout: { percentage: number; hashed: string; place: number; is_in: boolean } | null;
  } | null;
  holdouts: {
    variant: string;
    rollout: { percentage: number; hashed: string; place: number; is_in: boolean };
  }[];
  conditions: {
    index: number;
    outcome: string;
    identity: { kind: string; id: string } | null;
    filters: {
      type: string;
      key: string | null;
      operator: string;
      value: unknown;
      found: unknown;
      source: string;
      result: string;
      note: string | null;
    }[];
    rollout: { percentage: number; hashed: string; place: number; is_in: boolean } | null;
  }[];
  variant: {
    chosen: string | null;
    is_forced: boolean;
    hashed: string;
    place: number;
    shares: { key: string; from: number; below: number }[];
  } | null;
};

export type FlagReach = {
  populations: { group_type_index: number | null; total: number; matching: number; reached: number }[];
  sets: {
    index: number;
    group_type_index: number | null;
    total: number;
    matching: number;
    reached: number;
    variant: string | null;
  }[];
  variants: { key: string; rollout_percentage: number; reached: number }[];
};

export type FlagStatus = {
  status: "active" | "inactive" | "stale" | "deleted" | "unknown" | "archived";
  reason: string;
  reason_states_rollout?: boolean;
  rollout?: {
    effectively_full_rollout: boolean;
    has_targeting_conditions: boolean;
    max_rollout_percentage: number;
    is_multivariate: boolean;
  };
};

export type FlagUsage = {
  days: string[];
  results: {
    id: number;
    key: string;
    last_called_at: string | null;
    total: number;
    values: { value: string; total: number; counts: number[] }[];
  }[];
};

export type FlagsReply = {
  errorsWhileComputingFlags: boolean;
  requestId: string;
  evaluatedAt: number;
  flags: { [name: string]: unknown };
};

export type Group = {
  group_type_index: number;
  group_key: string;
  group_properties: { [name: string]: unknown };
  created_at: string;
};

export type GroupPage = { next: string | null; previous: string | null; results: Group[] };

export type GroupType = {
  group_type: string;
  group_type_index: number;
  name_singular: string | null;
  name_plural: string | null;
  detail_dashboard: number | null;
  default_columns: string[] | null;
  created_at: string | null;
};

export type Import = {
  id: string;
  project_id: number;
  name: string;
  origin: "upload" | "command_line";
  state: "uploading" | "waiting" | "running" | "done" | "failed" | "cancelled" | "interrupted";
  format: "auto" | "ndjson" | "csv" | "parquet" | "flagkeep" | "persons" | "groups" | "mixpanel-people" | "mixpanel-groups" | "ga4" | "ga4-users" | "umami" | "plausible" | "matomo" | "snowplow" | "heap" | "amplitude" | "mixpanel" | "rudderstack" | "segment" | "posthog" | "events" | null;
  map: string[];
  null: string[];
  timezone: string | null;
  link_identities: boolean | null;
  max_rejects: number | null;
  dry_run: boolean;
  created_by: number | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  received_bytes: number;
  progress: {
    records: number;
    bytes: number;
    total_bytes: number | null;
    records_per_second: number;
    seconds_left: number | null;
    rejected: number;
  };
  error: string | null;
  summary: {
    read: number;
    accepted: number;
    duplicate: number;
    made: number;
    rejected: number;
    placeholder_ids: number;
    left_out: { [name: string]: number };
    not_taken: { [name: string]: number };
    warnings: string[];
    shared_devices: number;
    first_time: string | null;
    last_time: string | null;
    people: number;
    resumed: number;
    dry_run: boolean;
    complete: boolean;
    seconds: number;
    events_per_second: number;
    formats: string[];
    rejections?: { [name: string]: number };
    first_events?: { [name: string]: unknown }[];
    time_spans?: { [name: string]: { first: string; last: string } };
    flags?: { created: number; updated: number; remarks: string[] };
  } | null;
};

export type Imports = { results: Import[] };

export type IngestionWarnings = {
  results: {
    type: string;
    count: number;
    last_seen: string;
    warnings: {
      type: string;
      subject: string;
      first_at: string;
      timestamp: string;
      count: number;
      details: { [name: string]: unknown };
    }[];
  }[];
};

export type Insight = {
  id: number;
  short_id: string;
  name: string;
  derived_name: string | null;
  description: string;
  query: { [name: string]: unknown };
  filters: { [name: string]: unknown };
  dashboards: number[];
  tags: string[];
  saved: boolean;
  favorited: boolean;
  deleted: boolean;
  created_by: User | null;
  created_at: string;
  updated_at: string;
  last_refresh: string | null;
  is_cached: boolean;
  result: unknown;
  columns: string[] | null;
  types: string[][] | null;
  hasMore: boolean | null;
  query_status: { complete: boolean; error: boolean; error_message: string } | null;
};

export type InsightPage = { count: number; next: string | null; previous: string | null; results: Insight[] };

export type InsightSql = { sql: string };

export type InstanceHistory = {
  results: {
    at: string;
    events_per_second: number;
    lag_entries: number;
    engine_up: boolean;
    disk_bytes: number;
    last_backup_at: string | null;
  }[];
};

export type ListedUser = User & { is_active: boolean; created_at: string };

export type Me = User & {
  is_staff: boolean;
  team: Project | null;
  organization: Organization | null;
  organizations: Organization[];
};

export type NewOrganizationMember = OrganizationMember & { console_url: string | null; expires_at: string | null };

export type NewShareLink = ShareLink & { token: string; url: string };

export type OneTimeLink = { console_url: string; expires_at: string };

export type OpenFeatureEvaluation = {
  key: string;
  value?: unknown;
  reason?: "STATIC" | "TARGETING_MATCH" | "SPLIT" | "DISABLED" | "UNKNOWN";
  variant?: string;
  metadata?: { [name: string]: unknown };
  errorCode?: string;
  errorDetails?: string;
};

export type Organization = {
  id: string;
  name: string;
  slug: string;
  created_at: string;
  membership_level: 1 | 8 | 15;
  feature_flags_access_level: 21 | 37;
};

export type OrganizationMember = {
  id: string;
  user: User;
  level: 1 | 8 | 15;
  joined_at: string;
  updated_at: string;
  is_active: boolean;
  has_password: boolean;
};

export type OrganizationMemberPage = { count: number; next: string | null; previous: string | null; results: OrganizationMember[] };

export type OrganizationPage = { count: number; next: string | null; previous: string | null; results: Organization[] };

export type Outcome = { success: boolean; usage_dashboard?: number; error?: string };

export type Person = {
  id: string;
  uuid: string;
  name: string;
  distinct_ids: string[];
  properties: { [name: string]: unknown };
  is_identified: boolean;
  created_at: string;
  version: number;
};

export type PersonPage = { next: string | null; previous: string | null; results: Person[] };

export type PersonalAPIKey = {
  id: string;
  label: string;
  mask_value: string;
  created_at: string;
  last_used_at: string | null;
  last_rolled_at: string | null;
  expires_at: string | null;
  user_id: number;
  scopes: string[];
  scoped_teams: number[];
  scoped_organizations: string[];
  value: null;
};

export type PersonalAPIKeyWithValue = {
  id: string;
  label: string;
  mask_value: string;
  created_at: string;
  last_used_at: string | null;
  last_rolled_at: string | null;
  expires_at: string | null;
  user_id: number;
  scopes: string[];
  scoped_teams: number[];
  scoped_organizations: string[];
  value: string;
};

export type Project = ShortProject & {
  project_id: number;
  completed_snippet_onboarding: boolean;
  has_completed_onboarding_for: { [name: string]: unknown } | null;
  ingested_event: boolean;
  is_demo: boolean;
  timezone: string;
  week_start_day: 0 | 1 | null;
  access_control: boolean;
};

export type ProjectPage = { count: number; next: string | null; previous: string | null; results: (Project | ShortProject)[] };

export type ProjectWithDetails = Project & {
  created_at: string;
  anonymize_ips: boolean;
  archived_at: string | null;
  approvals: "off" | "critical" | "all";
  web_goals: { name: string; event?: string | null; path?: string | null }[];
  count_screens: boolean;
  flag_views: { name: string; query: string }[];
  events_retention_days: number | null;
  api_token_backup: string | null;
  api_token_backup_use: TokenBackupUse | null;
  effective_membership_level: 1 | 8 | 15;
  group_types: GroupType[];
  secret_api_token: string | null;
  secret_api_token_backup: string | null;
  secret_api_token_backup_use: TokenBackupUse | null;
};

export type PropertyDefinition = {
  id: string;
  name: string;
  property_type: "String" | "Numeric" | "Boolean" | "DateTime" | null;
  is_numerical: boolean;
  last_seen_at: string;
};

export type PropertyDefinitionPage = { count: number; next: string | null; previous: string | null; results: PropertyDefinition[] };

export type QueryAnswer = {
  columns: string[];
  rows: { [name: string]: unknown }[];
  truncated: boolean;
  types?: string[][];
  results?: unknown[][];
  hasMore?: boolean;
};

export type RefusedRequests = {
  results: {
    at: string;
    method: string;
    path: string;
    status: number;
    reason: string | null;
    client: string;
  }[];
};

export type Role = {
  id: string;
  name: string;
  feature_flags_access_level: 21 | 37;
  created_at: string;
  created_by: User | null;
  members: string;
};

export type RoleMembership = { id: string; role_id: string; user: User; joined_at: string; updated_at: string };

export type RoleMembershipPage = { count: number; next: string | null; previous: string | null; results: RoleMembership[] };

export type RolePage = { count: number; next: string | null; previous: string | null; results: RoleWithMemberships[] };

export type RoleWithMemberships = Role & { role_memberships: RoleMembership[] };

export type ScheduledChange = {
  id: number;
  record_id: number;
  flag_key: string;
  model_name: "FeatureFlag";
  payload: { [name: string]: unknown };
  scheduled_at: string;
  executed_at: string | null;
  failure_reason: string | null;
  created_at: string;
  created_by: User | null;
};

export type ScheduledChangePage = { count: number; next: string | null; previous: string | null; results: ScheduledChange[] };

export type Session = {
  id: string;
  email: string;
  created_at: string;
  last_seen_at: string;
  expires_at: string;
  address: string;
  browser: string;
  is_current: boolean;
  is_from_key: boolean;
  scopes: string[];
  confirmed_until: string | null;
};

export type Setup = {
  email: string;
  first_name: string;
  last_name: string;
  organization: string | null;
  is_first: boolean;
  expires_at: string;
};

export type ShareLink = {
  id: number;
  name: string;
  dashboard_id: number | null;
  insight_id: number | null;
  overview: { [name: string]: unknown } | null;
  has_password: boolean;
  expires_at: string | null;
  created_by: User | null;
  created_at: string;
};

export type ShareLinkPage = { count: number; next: string | null; previous: string | null; results: ShareLink[] };

export type SharedItem = {
  kind: "dashboard" | "insight" | "overview";
  name: string;
  description: string;
  project: string;
  timezone: string;
  tiles: {
    id: number;
    layouts: { [name: string]: unknown };
    color: string | null;
    text: string | null;
    insight: {
      name: string;
      description: string;
      kind: string;
      display: string | null;
      result: unknown;
      last_refresh: string | null;
      problem: string | null;
    } | null;
  }[];
};

export type ShortProject = { id: number; uuid: string; name: string; organization: string; api_token: string };

export type Spikes = {
  results: {
    id: number;
    started_at: string;
    ended_at: string | null;
    peak_per_minute: number;
    usual_per_minute: number;
    events: { event: string; count: number }[];
    distinct_ids: { distinct_id: string; count: number }[];
  }[];
};

export type StartedSession = Session & { failed_sign_ins: number };

export type Survey = {
  id: string;
  name: string;
  description: string;
  type: "popover" | "widget" | "api" | "external_survey";
  schedule: "once" | "recurring" | "always";
  status: "draft" | "running" | "completed";
  questions: { [name: string]: unknown }[];
  conditions: { [name: string]: unknown } | null;
  appearance: { [name: string]: unknown } | null;
  linked_flag_id: number | null;
  linked_flag: FeatureFlag | null;
  targeting_flag: FeatureFlag | null;
  internal_targeting_flag: FeatureFlag | null;
  start_date: string | null;
  end_date: string | null;
  archived: boolean;
  enable_partial_responses: boolean;
  responses_limit: number | null;
  iteration_count: number | null;
  iteration_frequency_days: number | null;
  current_iteration: number | null;
  current_iteration_start_date: string | null;
  translations: { [name: string]: unknown } | null;
  created_at: string;
  created_by: User | null;
};

export type SurveyPage = { count: number; next: string | null; previous: string | null; results: Survey[] };

export type SurveyResponse = {
  submission_id: string | null;
  distinct_id: string | null;
  timestamp: string;
  completed: boolean;
  iteration: number | null;
  language: string | null;
  answers: { question_id: string; answer: string | number | string[] | null }[];
};

export type SurveyResponsePage = { count: number; next: string | null; previous: string | null; results: SurveyResponse[] };

export type SurveyStats = SurveyTotals & {
  survey_id: string;
  name: string;
  start_date: string | null;
  end_date: string | null;
  responses: number;
  questions: {
    id: string;
    index: number;
    type: string | null;
    question: string | null;
    answered: number;
    distribution: { value: string; count: number; percentage: number }[];
    mean: number | null;
    nps: { score: number; interval: number[]; promoters: number; passives: number; detractors: number } | null;
    weeks: {
      week: string;
      answered: number;
      mean: number | null;
      nps: { score: number; interval: number[]; promoters: number; passives: number; detractors: number } | null;
    }[];
  }[];
};

export type SurveyTotals = {
  stats: {
    "survey shown": {
      total_count: number;
      unique_persons: number;
      first_seen: string | null;
      last_seen: string | null;
      total_count_only_seen: number;
      unique_persons_only_seen: number;
    };
    "survey dismissed": {
      total_count: number;
      unique_persons: number;
      first_seen: string | null;
      last_seen: string | null;
      total_count_only_seen: number;
      unique_persons_only_seen: number;
    };
    "survey sent": {
      total_count: number;
      unique_persons: number;
      first_seen: string | null;
      last_seen: string | null;
      total_count_only_seen: number;
      unique_persons_only_seen: number;
    };
  };
  rates: {
    response_rate: number;
    dismissal_rate: number;
    unique_users_response_rate: number;
    unique_users_dismissal_rate: number;
  };
  computed_at: string;
  is_cached: boolean;
};

export type TokenBackupUse = { ends_at: string; requests: number; requests_with_new: number; last_used_at: string | null };

export type Usage = {
  results: {
    date: string;
    identified: number;
    anonymous: number;
    historical: number;
    billable: number;
    duplicates: number;
    dropped: number;
  }[];
  totals: {
    identified: number;
    anonymous: number;
    historical: number;
    billable: number;
    duplicates: number;
    dropped: number;
  };
};

export type User = {
  id: number;
  uuid: string;
  distinct_id: string;
  first_name: string;
  last_name: string;
  email: string;
  is_email_verified: boolean;
  hedgehog_config: { [name: string]: unknown };
  role_at_organization: "" | "engineering" | "data" | "product" | "founder" | "leadership" | "marketing" | "sales" | "other";
};

export type UserPage = { count: number; next: string | null; previous: string | null; results: ListedUser[] };

export type WebExperiment = {
  id: number;
  name: string;
  created_at: string;
  feature_flag_key: string;
  variants: { [name: string]: unknown };
};

export type WebExperimentPage = { count: number; next: string | null; previous: string | null; results: WebExperiment[] };

export type Webhook = {
  id: number;
  name: string;
  url: string;
  format: "json" | "slack" | "discord" | "custom";
  template: { [name: string]: unknown } | null;
  events: ("flag_changed" | "change_request_opened" | "change_request_decided" | "spike" | "ingestion_warning" | "backup_failed" | "weekly_summary")[];
  active: boolean;
  skipped_events: number;
  created_by: User | null;
  created_at: string;
  updated_at: string;
};

export type WebhookDelivery = {
  id: number;
  uuid: string;
  event: "flag_changed" | "change_request_opened" | "change_request_decided" | "spike" | "ingestion_warning" | "backup_failed" | "weekly_summary" | "test";
  item: string;
  state: "pending" | "delivered" | "failed";
  attempts: number;
  status: number | null;
  error: string | null;
  duration_ms: number | null;
  created_at: string;
  last_attempt_at: string | null;
  next_attempt_at: string | null;
};

export type WebhookDeliveryPage = { count: number; next: string | null; previous: string | null; results: WebhookDelivery[] };

export type WebhookPage = { count: number; next: string | null; previous: string | null; results: Webhook[] };

export type WebhookWithSecret = Webhook & { secret: string };
