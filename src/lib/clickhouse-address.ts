/** Address of an external event store, as in the setting `events-url`. */

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
  const [scheme, usualPort] = secure === "1" ? ["https", "8443"] : ["http", "8123"];
  try {
    return {
      url: `${scheme}://${hostname}:${port || usualPort}`,
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
