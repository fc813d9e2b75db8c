/** Addresses of external stores: `events-url` (ClickHouse), `postgres-url` and `s3://bucket/prefix`. */

export interface ClickHouseAddress {
  /** `http://host:8123` */
  url: string;
  user: string;
  password: string;
  database: string;
  /** Tables are created on all of its nodes, replicated and distributed. */
  cluster: string | null;
  /** Replicas that must confirm an insert. */
  quorum: number | "auto" | null;
}

const namePattern = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
const clusterPattern = /^[A-Za-z_][A-Za-z0-9_.-]{0,62}$/;
const parameters = ["cluster", "quorum", "secure"];
const quorumMax = 100;

/**
 * Parses `clickhouse://user:password@host:8123/database?cluster=…&quorum=…&secure=1`.
 *
 * @returns undefined when invalid, or with an unknown parameter.
 */
export function parseClickHouseUrl(text: string): ClickHouseAddress | undefined {
  if (!URL.canParse(text)) return undefined;
  const parsed = new URL(text);
  const { protocol, hostname, port, username, password, pathname, searchParams, hash } = parsed;
  const database = pathname.slice(1);
  if (protocol !== "clickhouse:" || hostname === "" || hash !== "" || !namePattern.test(database))
    return undefined;
  if ([...searchParams.keys()].some((name) => !parameters.includes(name))) return undefined;
  const cluster = searchParams.get("cluster");
  const quorum = getQuorum(searchParams.get("quorum"));
  const secure = searchParams.get("secure") ?? "0";
  if ((cluster !== null && !clusterPattern.test(cluster)) || quorum === undefined) return undefined;
  if (secure !== "0" && secure !== "1") return undefined;
  const [scheme, defaultPort] = secure === "1" ? ["https", "8443"] : ["http", "8123"];
  try {
    return {
      url: `${scheme}://${hostname}:${port || defaultPort}`,
      user: decodeURIComponent(username) || "default",
      password: decodeURIComponent(password),
      database,
      cluster,
      quorum,
    };
  } catch {
    // An invalid percent-encoding.
    return undefined;
  }
}

function getQuorum(text: string | null): ClickHouseAddress["quorum"] | undefined {
  if (text === null) return null;
  if (text === "auto") return text;
  const count = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  return count >= 1 && count <= quorumMax ? count : undefined;
}

/** The setting for this address; may contain a password. */
export function clickHouseUrl(address: ClickHouseAddress): string {
  const { url, user, password, database, cluster, quorum } = address;
  const [scheme, hostAndPath] = url.split("://") as [string, string];
  const parameters = new URLSearchParams({
    ...(cluster === null ? {} : { cluster }),
    ...(quorum === null ? {} : { quorum: String(quorum) }),
    ...(scheme === "https" ? { secure: "1" } : {}),
  });
  const who = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
  return `clickhouse://${who}@${hostAndPath}/${database}${parameters.size === 0 ? "" : `?${parameters}`}`;
}

/** The address without the password, for messages. */
export function redactUrl({ url, user, database }: ClickHouseAddress): string {
  return `${url.replace("://", `://${encodeURIComponent(user)}@`)}/${database}`;
}

export interface PostgresAddress {
  /** In the order of connection attempts. */
  hosts: { host: string; port: number }[];
  user: string;
  password: string;
  database: string;
  tls: boolean;
}

const hostsMax = 8;
const postgresPort = 5432;
const pattern = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/([^/?#]+)(?:\?([^#]*))?$/;
const hostPattern = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;

/**
 * Parses `postgres://user:password@host:5432,host:5432/database?sslmode=require`.
 *
 * @returns undefined when invalid, or with an unknown parameter.
 */
export function parsePostgresUrl(text: string): PostgresAddress | undefined {
  const [, login = "", positions = "", name = "", query = ""] = pattern.exec(text) ?? [];
  const hosts = positions.split(",").map((address) => {
    const [, host = "", port] = hostPattern.exec(address) ?? [];
    return { host: host.replace(/^\[|\]$/g, ""), port: port === undefined ? postgresPort : Number(port) };
  });
  if (hosts.length > hostsMax) return undefined;
  if (hosts.some(({ host, port }) => host === "" || port < 1 || port > 65_535)) return undefined;
  const parameters = new URLSearchParams(query);
  if ([...parameters.keys()].some((key) => key !== "sslmode")) return undefined;
  const mode = parameters.get("sslmode") ?? "disable";
  if (mode !== "disable" && mode !== "require") return undefined;
  const colon = login.indexOf(":");
  try {
    const user = decodeURIComponent(colon === -1 ? login : login.slice(0, colon)) || "flagkeep";
    const password = colon === -1 ? "" : decodeURIComponent(login.slice(colon + 1));
    return { hosts, user, password, database: decodeURIComponent(name), tls: mode === "require" };
  } catch {
    // An invalid percent-encoding.
    return undefined;
  }
}

/** The URL that `parsePostgresUrl` reads, with the password. */
export function postgresUrl(address: PostgresAddress): string {
  const { user, password, database, tls } = address;
  const login = [user, ...(password === "" ? [] : [password])].map(encodeURIComponent).join(":");
  return `postgres://${login}@${getLocations(address)}/${encodeURIComponent(database)}${tls ? "?sslmode=require" : ""}`;
}

/** The address without the password, for messages. */
export function redactPostgresUrl(address: PostgresAddress): string {
  return `postgres://${encodeURIComponent(address.user)}@${getLocations(address)}/${address.database}`;
}

function getLocations({ hosts }: PostgresAddress): string {
  return hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`).join(",");
}

export interface S3Address {
  bucket: string;
  /** Without a trailing slash. */
  key: string;
}

/** @returns undefined when invalid. */
export function parseS3Url(text: string): S3Address | undefined {
  const match = /^s3:\/\/([a-zA-Z0-9][a-zA-Z0-9.-]+)(?:\/(.*))?$/.exec(text);
  return match === null ? undefined : { bucket: match[1]!, key: (match[2] ?? "").replace(/\/+$/, "") };
}

/** A folder, or a location in S3: any other or mistyped URL would silently become a folder of that name. */
export function isFileLocation(text: string): boolean {
  return parseS3Url(text) !== undefined || !/^(?:s3:|[a-z][a-z\d+.-]*:\/\/)/i.test(text);
}
