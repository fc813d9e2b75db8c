/** How every command is called, rightly and wrongly: a command that is not here fails the tests. */

/** Where commands are tried out. */
export interface World {
  dataDir: string;
  /** For files that commands write. */
  folder: string;
  isRunning: boolean;
  /** Ids of keys by their labels. */
  keys: Record<string, string>;
  /** A file that `backup create` made. */
  backup: string;
}

export interface Invocation {
  /** Arguments behind the command's name; `--data-dir` and `--json` are added. */
  args: (world: World) => string[];
  /** Exit status, 0 unless said otherwise. */
  code?: (world: World) => number;
  /** It does not go together with others of its kind: without a server only one can open the events. */
  isAlone?: true;
  wrong: WrongCall[];
}

export interface WrongCall {
  args: string[];
  code: 1 | 2;
  /** A part of the one line on standard error. */
  says: string;
}

const unknownProject: WrongCall = { args: ["--project", "99"], code: 1, says: "Project 99 does not exist." };
const projectNotANumber: WrongCall = { args: ["--project", "one"], code: 2, says: "positive integer" };
const missing = (name: string): WrongCall => ({
  args: [],
  code: 2,
  says: `missing required argument '${name}'`,
});
const unknownKey = (says = "Key nope does not exist or is revoked."): WrongCall[] => [
  { args: ["nope"], code: 1, says },
  missing("id"),
];
const changedProject = (more: string[] = []): WrongCall[] => [
  { args: ["99", ...more], code: 1, says: "Project 99 does not exist." },
  { args: ["one", ...more], code: 2, says: "positive integer" },
];
const exported = (subject: string): Invocation => ({
  args: ({ folder }) => [`${folder}/${subject}.ndjson`, "--project", "1"],
  isAlone: true,
  wrong: [
    { args: ["--json"], code: 2, says: "requires a file" },
    { args: ["--format", "xml"], code: 2, says: "Allowed choices" },
    { args: ["/tmp/x.csv", "--format", "parquet", "--project", "1"], code: 2, says: "extension .csv" },
    { args: ["/tmp/x.ndjson.gz", "--project", "1"], code: 2, says: "extension .gz" },
    unknownProject,
  ],
});
const inProject = (...args: string[]) => [...args, "--project", "1"];

/** Commands whose work other tests look at: they do not end, or are no use without a shell. */
export const triedElsewhere: Record<string, string> = {
  "persons recreate": "test/serve/people-damage.test.ts",
  serve: "test/cli/cli.test.ts",
  completions: "test/cli/completions.test.ts",
  mcp: "test/mcp/executable.test.ts",
  "experiments results": "test/experiments/lifecycle.test.ts",
  "surveys results": "test/surveys/results.test.ts",
  "features enroll": "test/early-access/features.test.ts",
};

export const invocations: Record<string, Invocation> = {
  init: {
    args: ({ folder }) => ["--email", "new@example.com", "--data-dir", `${folder}/new`],
    wrong: [
      { args: [], code: 1, says: "in use" },
      { args: ["extra"], code: 2, says: "too many arguments" },
    ],
  },
  "flags list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "flags get": {
    args: () => inProject("first"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Flag nope does not exist." }, missing("key")],
  },
  "flags create": {
    args: () => inProject("second", "--rollout", "10", "--tag", "new"),
    wrong: [
      { args: inProject("not a key"), code: 2, says: "Only letters" },
      { args: inProject("third", "--rollout", "200"), code: 2, says: "0 to 100" },
    ],
  },
  "flags set": {
    args: () => inProject("switched-on", "--rollout", "30", "--on", "--payload", '{"a":1}'),
    wrong: [
      { args: inProject("nope", "--on"), code: 1, says: "Flag nope does not exist." },
      { args: inProject("first"), code: 2, says: "Nothing to change" },
      { args: inProject("first", "--on", "--off"), code: 2, says: "contradict" },
      { args: inProject("first", "--rollout", "101"), code: 2, says: "from 0 to 100" },
      { args: inProject("first", "--variant", "blue=70"), code: 2, says: "sum to 100" },
      missing("key"),
    ],
  },
  "flags delete": {
    args: () => inProject("deleted-now"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Flag nope does not exist." }, missing("key")],
  },
  "flags restore": {
    args: () => inProject("deleted-before"),
    wrong: [
      { args: inProject("first"), code: 1, says: "Deleted flag first does not exist." },
      missing("key"),
    ],
  },
  "flags enable": {
    args: () => inProject("switched-on"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Flag nope does not exist." }],
  },
  "flags disable": {
    args: () => inProject("switched-off"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Flag nope does not exist." }],
  },
  "flags export": { args: () => inProject(), wrong: [unknownProject] },
  "flags import": {
    args: ({ folder }) => inProject(`${folder}/flags.yaml`),
    wrong: [{ args: inProject("/nowhere.yaml"), code: 1, says: "/nowhere.yaml" }, missing("file")],
  },
  "flags explain": {
    args: () => inProject("first", "--distinct-id", "ann", "--filters", '{"groups": []}'),
    wrong: [
      { args: inProject("first"), code: 2, says: "--distinct-id" },
      { args: inProject("first", "--distinct-id", "ann", "--filters", "{"), code: 2, says: "JSON" },
    ],
  },
  "flags schedule": {
    args: () => inProject("first", "--at", "2099-01-02T03:04:05Z", "--off", "--user", "owner@example.com"),
    wrong: [
      { args: inProject("nope", "--at", "2099-01-02", "--on"), code: 1, says: "Flag nope does not exist." },
      { args: inProject("first", "--on"), code: 2, says: "--at" },
      { args: inProject("first", "--at", "soon", "--on"), code: 2, says: "a date and time" },
      {
        args: inProject("first", "--at", "2099-01-02", "--on", "--user", "nobody@example.com"),
        code: 1,
        says: "nobody@example.com is not a member",
      },
      {
        args: inProject("first", "--at", "2001-01-02", "--on", "--user", "owner@example.com"),
        code: 2,
        says: "must be in the future",
      },
      {
        args: inProject("first", "--at", "2099-01-02", "--user", "owner@example.com"),
        code: 2,
        says: "Nothing to change",
      },
      {
        args: inProject("first", "--at", "2099-01-02", "--on", "--user", "bob@example.com"),
        code: 1,
        says: "bob@example.com may not edit",
      },
      { args: [], code: 2, says: "--at" },
    ],
  },
  "flags scheduled": { args: () => inProject(), wrong: [unknownProject] },
  "flags unschedule": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "does not exist" }, missing("id")],
  },
  "flags change-requests": {
    args: () => inProject("--state", "pending"),
    wrong: [{ args: inProject("--state", "lost"), code: 2, says: "Allowed choices" }],
  },
  "flags approve": {
    args: () => inProject("1", "--user", "owner@example.com"),
    wrong: [
      { args: inProject("99", "--user", "owner@example.com"), code: 1, says: "does not exist" },
      {
        args: inProject("2", "--user", "nobody@example.com"),
        code: 1,
        says: "User nobody@example.com does not exist",
      },
      missing("id"),
    ],
  },
  "flags reject": {
    args: () => inProject("3", "--user", "owner@example.com"),
    wrong: [{ args: inProject("99", "--user", "owner@example.com"), code: 1, says: "does not exist" }],
  },
  "persons get": {
    args: () => inProject("y".repeat(300)),
    wrong: [{ args: inProject("nobody"), code: 1, says: "Person nobody does not exist." }, missing("person")],
  },
  "persons delete": {
    args: () => inProject("z"),
    isAlone: true,
    wrong: [{ args: inProject("nobody"), code: 1, says: "Person nobody does not exist." }, missing("person")],
  },
  "keys create": {
    args: () => ["--user", "owner@example.com", "--label", "new", "--scope", "*", "--expires", "90d"],
    wrong: [
      { args: [], code: 2, says: "--scope" },
      { args: ["--scope", "everything"], code: 1, says: "--user" },
      { args: ["--scope", "nonsense", "--user", "owner@example.com"], code: 2, says: "nonsense" },
      { args: ["--scope", "*", "--user", "nobody@example.com"], code: 2, says: "nobody@example.com" },
      { args: ["--scope", "*", "--expires", "soon"], code: 2, says: "90d" },
      {
        args: ["--scope", "*", "--user", "owner@example.com", "--project", "99"],
        code: 1,
        says: "Project 99",
      },
    ],
  },
  "keys list": { args: () => [], wrong: [{ args: ["--jsn"], code: 2, says: "Did you mean --json?" }] },
  "keys show": { args: ({ keys }) => [keys.show!], wrong: unknownKey("Key nope does not exist.") },
  "keys revoke": { args: ({ keys }) => [keys.revoke!], wrong: unknownKey() },
  "keys roll": { args: ({ keys }) => [keys.roll!], wrong: unknownKey() },
  "projects list": { args: () => ["--all"], wrong: [{ args: ["all"], code: 2, says: "too many arguments" }] },
  "projects create": {
    args: () => ["Shop", "--timezone", "Europe/Berlin"],
    wrong: [
      { args: [""], code: 2, says: "name may not be blank" },
      { args: ["Shop", "--timezone", "Mars/Olympus"], code: 2, says: "Mars/Olympus" },
      { args: ["Shop", "--organization", "none"], code: 1, says: "--organization" },
    ],
  },
  "projects rename": { args: () => ["2", "Store"], wrong: changedProject(["Name"]) },
  "projects show-key": { args: () => ["2"], wrong: changedProject() },
  "projects rotate-key": {
    args: () => ["2", "--grace", "0"],
    wrong: [
      ...changedProject(),
      { args: ["2", "--grace", "soon"], code: 2, says: "for example 7d" },
      { args: ["2", "--grace", "91d"], code: 2, says: "maximum is 90d" },
    ],
  },
  "projects revoke-old-key": { args: () => ["2"], wrong: changedProject() },
  "projects retention": {
    args: () => ["2", "400d"],
    wrong: [
      ...changedProject(["400d"]),
      { args: ["2", "400"], code: 2, says: "days, for example 400d" },
      { args: ["2", "0d"], code: 2, says: "days, for example 400d" },
    ],
  },
  "projects rotate-secret": { args: () => ["2"], wrong: changedProject() },
  "projects archive": { args: () => ["3"], wrong: changedProject() },
  "users create": {
    args: () => ["new@example.com", "--level", "admin"],
    wrong: [
      { args: ["nobody"], code: 2, says: "valid email" },
      { args: ["new@example.com", "--level", "king"], code: 2, says: "member, admin, owner" },
      missing("email"),
    ],
  },
  "users list": { args: () => [], wrong: [{ args: ["--all"], code: 2, says: "--all" }] },
  "users deactivate": {
    args: () => ["ann@example.com"],
    wrong: [{ args: ["nobody@example.com"], code: 1, says: "nobody@example.com" }],
  },
  "users activate": {
    args: () => ["bob@example.com"],
    wrong: [{ args: ["nobody@example.com"], code: 1, says: "nobody@example.com" }],
  },
  "users level": {
    args: () => ["ann@example.com", "admin"],
    wrong: [
      { args: ["ann@example.com", "king"], code: 2, says: "Allowed choices" },
      { args: ["nobody@example.com", "admin"], code: 1, says: "nobody@example.com is not a member" },
      { args: ["owner@example.com", "member"], code: 2, says: "An organization requires an owner" },
      missing("email"),
    ],
  },
  "users link": {
    args: () => ["carol@example.com", "--level", "admin"],
    wrong: [
      { args: ["no-address"], code: 2, says: "valid email" },
      { args: ["dora@example.com", "--level", "king"], code: 2, says: "Allowed choices" },
      missing("email"),
    ],
  },
  members: { args: () => [], wrong: [{ args: ["--organization", "none"], code: 1, says: "--organization" }] },
  "roles create": {
    args: () => ["Release"],
    wrong: [{ args: ["Has"], code: 2, says: "already" }, missing("name")],
  },
  "roles list": {
    args: () => [],
    wrong: [{ args: ["--organization", "none"], code: 1, says: "--organization" }],
  },
  "roles set": {
    args: () => ["Has", "--flags-access", "view"],
    wrong: [
      { args: ["Has"], code: 2, says: "Use at least one of --name, --flags-access." },
      { args: ["Has", "--flags-access", "all"], code: 2, says: "view, edit" },
      { args: ["Has", "--name", "x".repeat(201)], code: 2, says: "no more than 200 characters" },
      { args: ["None", "--name", "x"], code: 1, says: "None" },
    ],
  },
  "roles delete": {
    args: () => ["Gone"],
    wrong: [{ args: ["None"], code: 1, says: "None" }, missing("name")],
  },
  "roles add-member": {
    args: () => ["Empty", "ann@example.com"],
    wrong: [
      { args: ["None", "ann@example.com"], code: 1, says: "None" },
      { args: ["Empty", "nobody@example.com"], code: 1, says: "nobody@example.com" },
      { args: ["Empty"], code: 2, says: "email" },
    ],
  },
  "roles remove-member": {
    args: () => ["Has", "ann@example.com"],
    wrong: [{ args: ["Has", "nobody@example.com"], code: 1, says: "does not have the role" }],
  },
  "experiments list": {
    args: () => inProject("--status", "running"),
    wrong: [
      unknownProject,
      projectNotANumber,
      { args: inProject("--status", "odd"), code: 2, says: "Allowed choices" },
    ],
  },
  "experiments show": {
    args: () => inProject("To launch"),
    wrong: [
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
      missing("experiment"),
    ],
  },
  "experiments create": {
    args: () => inProject("Checkout", "--feature-flag-key", "checkout-test"),
    wrong: [
      {
        args: inProject("x", "--primary-metrics", "{"),
        code: 2,
        says: "--primary-metrics is not valid JSON.",
      },
      { args: inProject("x", "--feature-flag-key", "first"), code: 2, says: "2 to 20 variants" },
      missing("name"),
    ],
  },
  "experiments launch": {
    args: () => inProject("To launch"),
    wrong: [
      { args: inProject("Ended"), code: 2, says: "must be reset" },
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
    ],
  },
  "experiments pause": {
    args: () => inProject("To pause"),
    wrong: [
      { args: inProject("Ended"), code: 2, says: "must be reset" },
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
    ],
  },
  "experiments resume": {
    args: () => inProject("Paused"),
    wrong: [
      { args: inProject("Ended"), code: 2, says: "must be reset" },
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
    ],
  },
  "experiments end": {
    args: () => inProject("To end"),
    wrong: [
      { args: inProject("Ended"), code: 2, says: "has already ended" },
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
    ],
  },
  "experiments ship": {
    args: () => inProject("To ship", "test"),
    wrong: [
      { args: inProject("To ship", "none"), code: 2, says: 'has no variant "none"' },
      missing("experiment"),
    ],
  },
  "experiments reset": {
    args: () => inProject("To reset"),
    wrong: [{ args: inProject("Draft"), code: 2, says: "must be launched" }, missing("experiment")],
  },
  "experiments archive": {
    args: () => inProject("Ended"),
    wrong: [
      { args: inProject("Draft"), code: 2, says: "Experiment must be launched" },
      missing("experiment"),
    ],
  },
  "experiments unarchive": {
    args: () => inProject("Archived"),
    wrong: [{ args: inProject("Draft"), code: 2, says: "is not archived" }, missing("experiment")],
  },
  "features list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "features create": {
    args: () => inProject("New editor", "--stage", "beta"),
    wrong: [
      { args: inProject("x"), code: 2, says: "required option '--stage <value>'" },
      { args: inProject("x", "--stage", "gamma"), code: 2, says: "Allowed choices" },
      {
        args: inProject("x", "--stage", "beta", "--payload", "{"),
        code: 2,
        says: "--payload must be a JSON object.",
      },
    ],
  },
  "features stage": {
    args: () => inProject("Staged", "alpha"),
    wrong: [
      { args: inProject("nope", "alpha"), code: 1, says: "Early access feature nope does not exist." },
      { args: inProject("Staged", "gamma"), code: 2, says: "gamma" },
      missing("feature"),
    ],
  },
  "surveys list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "surveys show": {
    args: () => inProject("To start"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Survey nope does not exist." }, missing("survey")],
  },
  "surveys create": {
    args: ({ folder }) => inProject("From a file", "-f", `${folder}/survey.yaml`),
    wrong: [
      { args: inProject("x", "-f", "/nowhere.yaml"), code: 1, says: "/nowhere.yaml" },
      { args: inProject("x", "--type", "popover"), code: 2, says: "required option '--questions <json>'" },
      { args: inProject("x", "--type", "letter"), code: 2, says: "Allowed choices" },
      { args: inProject("x", "--type", "api", "--questions", "["), code: 2, says: "not valid JSON" },
      { args: inProject("x", "--type", "api", "--questions", "[]"), code: 2, says: "1 to 50 questions" },
      missing("name"),
    ],
  },
  "surveys start": {
    args: () => inProject("To start"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Survey nope does not exist." }, missing("survey")],
  },
  "surveys stop": {
    args: () => inProject("To stop"),
    wrong: [
      { args: inProject("Draft"), code: 2, says: "`end_date` must be after `start_date`." },
      missing("survey"),
    ],
  },
  "annotations list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "annotations create": {
    args: () => inProject("New checkout", "--at", "2026-03-04T12:00:00Z"),
    wrong: [
      { args: inProject(" "), code: 2, says: "may not be blank" },
      { args: inProject("x", "--scope", "all"), code: 2, says: "Allowed choices" },
      { args: inProject("x", "--scope", "dashboard"), code: 2, says: "This scope requires it." },
      missing("content"),
    ],
  },
  "annotations update": {
    args: () => inProject("1", "--content", "Newer checkout"),
    wrong: [
      { args: inProject("1"), code: 2, says: "Use at least one of --content" },
      { args: inProject("99", "--content", "x"), code: 1, says: "Annotation 99 does not exist." },
    ],
  },
  "annotations delete": {
    args: () => inProject("2"),
    wrong: [{ args: inProject("99"), code: 1, says: "Annotation 99 does not exist." }, missing("id")],
  },
  "share-links list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "share-links create": {
    args: () => inProject("--dashboard", "1", "--name", "Wall"),
    wrong: [
      { args: inProject(), code: 2, says: "Send either" },
      { args: inProject("--dashboard", "999"), code: 2, says: 'Invalid pk "999"' },
      { args: inProject("--dashboard", "1", "--password", "short"), code: 2, says: "at least 8" },
    ],
  },
  "share-links revoke": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "Share link 99 does not exist." }, missing("id")],
  },
  "webhooks list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "webhooks create": {
    args: () =>
      inProject(
        "--webhook-url",
        "https://93.184.215.14/hook",
        "--events",
        "flag_changed,spike",
        "--no-active",
      ),
    wrong: [
      { args: inProject(), code: 2, says: "required option '--webhook-url <url>'" },
      { args: inProject("--webhook-url", "ftp://x"), code: 2, says: "Enter a URL such as" },
      { args: inProject("--webhook-url", "http://127.0.0.1/"), code: 2, says: "127.0.0.1 is an address of" },
      { args: inProject("--webhook-url", "https://8.8.8.8/", "--events", "none"), code: 2, says: "none" },
      {
        args: inProject("--webhook-url", "https://8.8.8.8/", "--template", "{"),
        code: 2,
        says: "not valid JSON",
      },
    ],
  },
  "webhooks update": {
    args: () => inProject("1", "--name", "Releases"),
    wrong: [
      { args: inProject("1"), code: 2, says: "Use at least one of --name, --webhook-url" },
      { args: inProject("99", "--name", "x"), code: 1, says: "Webhook 99 does not exist." },
    ],
  },
  "webhooks enable": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks disable": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks delete": {
    args: () => inProject("2"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks rotate-secret": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks test": {
    args: () => inProject("3"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks deliveries": {
    args: () => inProject("3"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "cohorts list": { args: () => [], wrong: [unknownProject, projectNotANumber] },
  "organization set": {
    args: () => ["--flags-access", "view"],
    wrong: [
      { args: [], code: 2, says: "--flags-access" },
      { args: ["--flags-access", "none"], code: 2, says: "view, edit" },
    ],
  },
  query: {
    args: () => inProject("SELECT event, count(*) AS times FROM events GROUP BY ALL"),
    isAlone: true,
    wrong: [
      missing("sql"),
      { args: ["SELECT 1", "--format", "xml"], code: 2, says: "table, json, csv, parquet" },
      { args: inProject("SELECT 1", "-o", "rows.txt"), code: 2, says: ".csv or .parquet" },
      {
        args: inProject("SELECT 1", "-o", "rows.csv", "--format", "json"),
        code: 2,
        says: "omit --format",
      },
      {
        args: inProject("SELECT 1", "-o", "/nowhere/rows.csv"),
        code: 1,
        says: "Folder /nowhere does not exist",
      },
    ],
  },
  web: {
    args: () => inProject("--range", "7d", "--compare", "previous"),
    isAlone: true,
    wrong: [
      unknownProject,
      projectNotANumber,
      { args: ["--range", "soon"], code: 2, says: "30d" },
      { args: ["--range", "0d"], code: 2, says: "30d" },
      { args: ["--range", "2026-02-30..2026-03-01"], code: 2, says: "30d" },
      { args: ["--range", "2026-03-02..2026-03-01"], code: 2, says: "30d" },
      { args: ["--by", "Page"], code: 2, says: "pages" },
      { args: ["--compare", "always"], code: 2, says: "previous, year" },
      { args: ["--limit", "0"], code: 2, says: "positive integer" },
    ],
  },
  status: { args: () => [], wrong: [{ args: ["now"], code: 2, says: "too many arguments" }] },
  usage: {
    args: () => ["--from", "2020-01-01"],
    wrong: [
      unknownProject,
      { args: ["--from", "2026-02-30"], code: 2, says: "2026-11-01" },
      { args: ["--from", "2026-02-02", "--to", "2026-02-01"], code: 2, says: "later day" },
    ],
  },
  warnings: {
    args: () => ["--limit", "10"],
    wrong: [unknownProject, { args: ["--limit", "0"], code: 2, says: "positive integer" }],
  },
  top: {
    args: () => ["--project", "1"],
    code: ({ isRunning }) => (isRunning ? 0 : 1),
    wrong: [unknownProject, { args: ["--interval", "0"], code: 2, says: "number of seconds" }],
  },
  healthcheck: {
    args: () => [],
    code: ({ isRunning }) => (isRunning ? 0 : 1),
    wrong: [{ args: ["--url", "http://127.0.0.1:1"], code: 1, says: "not ready" }],
  },
  "migrate-events": {
    // There is a file already.
    args: () => ["--to", "duckdb"],
    code: () => 1,
    isAlone: true,
    wrong: [
      { args: [], code: 2, says: "--to" },
      { args: ["--to", "mysql://here"], code: 2, says: "clickhouse://" },
    ],
  },
  "migrate-to-cluster": {
    // Nowhere to go.
    args: () => [],
    code: () => 1,
    isAlone: true,
    wrong: [
      { args: ["--postgres-url", "postgres://h/d"], code: 2, says: "--events-url" },
      { args: ["--postgres-url", "mysql://h/d"], code: 2, says: "postgres://user@host" },
    ],
  },
  "migrate-from-cluster": {
    args: () => [],
    code: () => 1,
    isAlone: true,
    wrong: [
      { args: ["--postgres-url", "postgres://h/d"], code: 2, says: "--events-url" },
      { args: ["--postgres-url", "postgres://u:p@h:0/d"], code: 2, says: "postgres://user@host" },
    ],
  },
  ...Object.fromEntries(
    ["status", "resume", "pause-loading"].map((name) => [
      `cluster ${name}`,
      {
        // There is no cluster.
        args: () => (name === "pause-loading" ? ["--for", "10m"] : []),
        code: () => 1,
        wrong: [
          {
            args: ["--postgres-url", "mysql://h/d", "--for", "10m"].slice(
              0,
              name === "pause-loading" ? 4 : 2,
            ),
            code: 2,
            says: "postgres://user@host",
          },
          ...(name === "pause-loading"
            ? [{ args: ["--for", "25h"], code: 2 as const, says: "from 1s to 24h" }]
            : []),
        ],
      } satisfies Invocation,
    ]),
  ),
  migrate: { args: () => ["--check"], isAlone: true, wrong: [{ args: [], code: 2, says: "--check" }] },
  doctor: {
    args: () => ["--port", "0"],
    isAlone: true,
    wrong: [{ args: ["--port", "many"], code: 2, says: '--port is "many"' }],
  },
  scrub: { args: () => [], wrong: [{ args: ["extra"], code: 2, says: "too many arguments" }] },
  "export events": exported("events"),
  "export persons": exported("persons"),
  "export groups": exported("groups"),
  "export flags": exported("flags"),
  import: {
    args: ({ folder }) => inProject(`${folder}/old.ndjson`),
    isAlone: true,
    wrong: [
      missing("file"),
      { args: inProject("/nowhere.ndjson"), code: 1, says: "/nowhere.ndjson" },
      { args: inProject("/nowhere.ndjson", "--format", "xml"), code: 2, says: "Allowed choices" },
    ],
  },
  "backup create": {
    args: ({ folder }) => [`${folder}/backups`],
    isAlone: true,
    wrong: [{ args: ["s3://a/b"], code: 1, says: "S3 credentials are missing." }],
  },
  "backup list": {
    args: ({ folder }) => [`${folder}/backups`],
    isAlone: true,
    wrong: [{ args: ["--all"], code: 2, says: "--all" }],
  },
  "backup verify": {
    args: ({ backup }) => [backup],
    isAlone: true,
    wrong: [{ args: ["/nowhere.tar.zst"], code: 1, says: "/nowhere.tar.zst" }, missing("backup")],
  },
  "backup drill": {
    args: ({ backup }) => [backup],
    isAlone: true,
    wrong: [{ args: ["/nowhere.tar.zst"], code: 1, says: "/nowhere.tar.zst" }],
  },
  "backup prune": {
    args: ({ folder }) => [`${folder}/backups`, "--keep-last", "1", "--dry-run"],
    isAlone: true,
    wrong: [
      { args: [], code: 2, says: "--keep-last" },
      { args: ["--keep-last", "some"], code: 2, says: "an integer" },
    ],
  },
  "backup restore": {
    args: ({ backup, folder }) => [backup, "--data-dir", `${folder}/restored`],
    isAlone: true,
    wrong: [{ args: ["/nowhere.tar.zst"], code: 1, says: "/nowhere.tar.zst" }, missing("backup")],
  },
  rebuild: {
    // An import without a server is in no backup.
    args: ({ backup }) => ["--from", backup, "--accept-loss"],
    code: ({ isRunning }) => (isRunning ? 1 : 0),
    isAlone: true,
    wrong: [
      { args: ["--from", "/nowhere.tar.zst"], code: 1, says: "/nowhere.tar.zst" },
      { args: ["now"], code: 2, says: "too many arguments" },
    ],
  },
  version: { args: () => [], wrong: [{ args: ["now"], code: 2, says: "too many arguments" }] },
};
