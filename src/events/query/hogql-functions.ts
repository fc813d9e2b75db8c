/**
 * HogQL's functions as DuckDB's SQL. `_1`, `_2` are the arguments, `@1` is an argument as a timestamp, `#1` as a number,
 * `$1` as a JSON pointer. Pure data: `hogql-tree.ts` inserts the arguments.
 */

/** A function of the clock's time: of the project's zone, or of the zone in a further argument. */
const ofClock = (sql: string): string[] => [
  sql,
  sql.replaceAll("@1", `timezone(_${getArguments(sql) + 1}, @1)`),
];

/** The same for functions whose result is an instant. */
const toInstant = (sql: string): string[] => [
  sql,
  `timezone(_${getArguments(sql) + 1}, ${sql.replaceAll("@1", `timezone(_${getArguments(sql) + 1}, @1)`)})`,
];

const getArguments = (sql: string): number =>
  Math.max(...[...sql.matchAll(/[_@#](\d)/g)].map(([, at]) => Number(at)));

/** By name in lower case; of several forms, the one with as many arguments is used. */
export const templates: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries({
    // Times.
    now: "now()",
    today: "CAST(now() AS DATE)",
    yesterday: "CAST(now() AS DATE) - 1",
    todate: ofClock("CAST(@1 AS DATE)"),
    todateornull: "CAST(@1 AS DATE)",
    ...Object.fromEntries(
      ["parsedatetimebesteffort", "parsedatetime64besteffort", "todatetime"].flatMap((name) =>
        ["", "ornull", "orzero"].map((end) => [name + end, "@1"]),
      ),
    ),
    ...Object.fromEntries(
      ["second", "minute", "day"].map((unit) => [`tostartof${unit}`, toInstant(`date_trunc('${unit}', @1)`)]),
    ),
    // `date_trunc` moves the first of two equal hours to the second.
    tostartofhour: toInstant("date_trunc('minute', @1) - to_minutes(minute(@1))"),
    ...Object.fromEntries(
      ["month", "quarter", "year", "isoyear"].map((unit) => [
        `tostartof${unit}`,
        ofClock(`CAST(date_trunc('${unit}', @1) AS DATE)`),
      ]),
    ),
    tomonday: ofClock("CAST(date_trunc('week', @1) AS DATE)"),
    tostartoffiveminutes: "time_bucket(INTERVAL 5 MINUTE, @1)",
    tostartoffiveminute: "time_bucket(INTERVAL 5 MINUTE, @1)",
    tostartoftenminutes: "time_bucket(INTERVAL 10 MINUTE, @1)",
    tostartoffifteenminutes: "time_bucket(INTERVAL 15 MINUTE, @1)",
    tolastdayofmonth: ofClock("last_day(@1)"),
    ...Object.fromEntries(
      ["datediff", "date_diff"].map((name) => [
        name,
        ["date_diff(_1, _2)", "date_diff(_1, @2, @3)", "date_diff(_1, timezone(_4, @2), timezone(_4, @3))"],
      ]),
    ),
    datetrunc: ["date_trunc(_1, @2)", "timezone(_3, date_trunc(_1, timezone(_3, @2)))"],
    toyear: ofClock("year(@1)"),
    toquarter: ofClock("quarter(@1)"),
    tomonth: ofClock("month(@1)"),
    todayofyear: ofClock("dayofyear(@1)"),
    todayofmonth: ofClock("dayofmonth(@1)"),
    todayofweek: "isodow(@1)",
    tohour: ofClock("hour(@1)"),
    tominute: ofClock("minute(@1)"),
    tosecond: "second(@1)",
    toisoweek: ofClock("week(@1)"),
    toisoyear: ofClock("isoyear(@1)"),
    toweek: "CAST(strftime(@1, '%U') AS INTEGER)",
    toyyyymm: ofClock("CAST(strftime(@1, '%Y%m') AS INTEGER)"),
    toyyyymmdd: ofClock("CAST(strftime(@1, '%Y%m%d') AS INTEGER)"),
    toyyyymmddhhmmss: ofClock("CAST(strftime(@1, '%Y%m%d%H%M%S') AS BIGINT)"),
    tounixtimestamp: "CAST(epoch(@1) AS BIGINT)",
    tounixtimestamp64milli: "epoch_ms(@1)",
    fromunixtimestamp: "timezone('UTC', make_timestamp(CAST(#1 * 1000000 AS BIGINT)))",
    fromunixtimestamp64milli: "timezone('UTC', make_timestamp(CAST(#1 * 1000 AS BIGINT)))",
    ...Object.fromEntries(
      ["second", "minute", "hour", "day", "week", "month", "quarter", "year"].flatMap((unit) => [
        [`tointerval${unit}`, `to_${unit}s(CAST(#1 AS INTEGER))`],
        [`add${unit}s`, `@1 + to_${unit}s(CAST(#2 AS INTEGER))`],
        [`subtract${unit}s`, `@1 - to_${unit}s(CAST(#2 AS INTEGER))`],
      ]),
    ),
    // Conversions.
    // Without the offset, as in ClickHouse.
    tostring:
      "CASE WHEN typeof(_1) = 'TIMESTAMP WITH TIME ZONE' THEN regexp_replace(CAST(_1 AS VARCHAR), '[+-][0-9:]+$', '') " +
      "ELSE CAST(_1 AS VARCHAR) END",
    tobool: "TRY_CAST(_1 AS BOOLEAN)",
    touuid: "TRY_CAST(_1 AS UUID)",
    touuidornull: "TRY_CAST(_1 AS UUID)",
    ...Object.fromEntries(
      ["", "8", "16", "32", "64"].flatMap((bits) =>
        ["toint", "touint"].flatMap((name) => numeric(name + bits, "TRY_CAST(trunc(#1) AS BIGINT)")),
      ),
    ),
    ...Object.fromEntries(["", "32", "64"].flatMap((bits) => numeric(`tofloat${bits}`, "#1"))),
    todecimal: ["#1", "round(#1, CAST(_2 AS INTEGER))"],
    assumenotnull: "_1",
    tonullable: "_1",
    // Conditions.
    isnull: "_1 IS NULL",
    isnotnull: "_1 IS NOT NULL",
    empty: "len(_1) = 0",
    notempty: "len(_1) > 0",
    ifnull: "coalesce(_1, _2)",
    ...infix("= != < > <= >=", "equals notequals less greater lessorequals greaterorequals"),
    ...infix("+ - * / % //", "plus minus multiply divide modulo intdiv"),
    ...infix("LIKE|NOT LIKE|ILIKE|NOT ILIKE", "like notlike ilike notilike", "|"),
    negate: "- _1",
    xor: "_1 != _2",
    // Strings.
    splitbychar: "string_split(_2, _1)",
    splitbystring: "string_split(_2, _1)",
    replaceall: "replace(_1, _2, _3)",
    replaceone: "regexp_replace(_1, regexp_escape(_2), _3)",
    replaceregexpall: "regexp_replace(_1, _2, _3, 'g')",
    replaceregexpone: "regexp_replace(_1, _2, _3)",
    match: "regexp_matches(_1, _2)",
    extractall: "regexp_extract_all(_1, _2)",
    position: "strpos(_1, _2)",
    positioncaseinsensitive: "strpos(lower(_1), lower(_2))",
    startswith: "starts_with(_1, _2)",
    endswith: "ends_with(_1, _2)",
    lowerutf8: "lower(_1)",
    upperutf8: "upper(_1)",
    lengthutf8: "length(_1)",
    leftpad: "lpad(_1, _2, _3)",
    rightpad: "rpad(_1, _2, _3)",
    trimleft: "ltrim(_1)",
    trimright: "rtrim(_1)",
    trimboth: "trim(_1)",
    protocol: "regexp_extract(_1, '^([a-z][a-z0-9+.-]*):', 1)",
    domain: "regexp_extract(_1, '^(?:[a-z][a-z0-9+.-]*:)?//(?:[^@/]*@)?([^/:?#]+)', 1)",
    path: "regexp_extract(_1, '^(?:[a-z][a-z0-9+.-]*:)?//[^/?#]*([^?#]*)', 1)",
    // Arrays.
    arraymap: "list_transform(_2, _1)",
    arrayfilter: "list_filter(_2, _1)",
    arrayexists: "len(list_filter(_2, _1)) > 0",
    arrayall: "len(list_filter(_2, _1)) = len(_2)",
    arraycount: ["len(_1)", "len(list_filter(_2, _1))"],
    arraysum: ["list_sum(_1)", "list_sum(list_transform(_2, _1))"],
    arrayavg: "list_avg(_1)",
    arraymin: "list_min(_1)",
    arraymax: "list_max(_1)",
    arraydistinct: "list_distinct(_1)",
    arrayuniq: "len(list_distinct(_1))",
    arraysort: "list_sort(_1)",
    arrayreversesort: "list_reverse_sort(_1)",
    arrayreverse: "list_reverse(_1)",
    arraystringconcat: ["array_to_string(_1, '')", "array_to_string(_1, _2)"],
    arrayelement: "list_extract(_1, _2)",
    arrayslice: ["list_slice(_1, _2, len(_1))", "list_slice(_1, _2, _2 + _3 - 1)"],
    arrayflatten: "flatten(_1)",
    arrayconcat: "list_concat(_1, _2)",
    arraypushback: "list_append(_1, _2)",
    arraypushfront: "list_prepend(_2, _1)",
    arrayenumerate: "range(1, len(_1) + 1)",
    arrayjoin: "unnest(_1)",
    has: "list_contains(_1, _2)",
    hasany: "list_has_any(_1, _2)",
    hasall: "list_has_all(_1, _2)",
    indexof: "coalesce(list_position(_1, _2), 0)",
    // JSON. Absent members are empty, zero or false.
    jsonextractstring: "CASE WHEN json_type(_1, $1) = 'VARCHAR' THEN json_extract_string(_1, $1) ELSE '' END",
    jsonextractraw: "coalesce(CAST(json_extract(_1, $1) AS VARCHAR), '')",
    jsonextractbool: "coalesce(json_extract_string(_1, $1) = 'true', false)",
    ...Object.fromEntries(
      ["jsonextractint", "jsonextractuint"].map((name) => [
        name,
        "coalesce(TRY_CAST(trunc(TRY_CAST(json_extract_string(_1, $1) AS DOUBLE)) AS BIGINT), 0)",
      ]),
    ),
    jsonextractfloat: "coalesce(TRY_CAST(json_extract_string(_1, $1) AS DOUBLE), 0)",
    jsonextractkeys: "coalesce(json_keys(_1, $1), [])",
    jsonextractarrayraw: "coalesce(CAST(CAST(json_extract(_1, $1) AS JSON[]) AS VARCHAR[]), [])",
    jsonhas: "coalesce(json_exists(_1, $1), false)",
    jsonlength: "coalesce(json_array_length(_1, $1), 0)",
    jsontype: "json_type(_1, $1)",
  } satisfies Record<string, string | string[]>).map(([name, forms]) => [name, [forms].flat()]),
);

/** A conversion and its variants for what is not a number. */
function numeric(name: string, sql: string): [string, string][] {
  return [
    [name, sql],
    [`${name}ornull`, sql],
    [`${name}orzero`, `coalesce(${sql}, 0)`],
    [`${name}ordefault`, `coalesce(${sql}, _2)`],
  ];
}

/** Operators in the form of functions. */
function infix(operators: string, names: string, separator = " "): Record<string, string> {
  const symbols = operators.split(separator);
  return Object.fromEntries(names.split(" ").map((name, index) => [name, `_1 ${symbols[index]} _2`]));
}

/** Aggregates: the name in DuckDB, and whether equal values count once. */
export const aggregates: Readonly<Record<string, { name: string; isDistinct?: true; skipsNull?: true }>> = {
  ...Object.fromEntries(
    ["uniq", "uniqexact", "uniqhll12", "uniqcombined", "uniqcombined64", "uniqtheta", "countdistinct"].map(
      (name) => [name, { name: "count", isDistinct: true }],
    ),
  ),
  ...Object.fromEntries(
    ["count", "sum", "avg", "min", "max", "median", "argmin", "argmax", "stddev_pop", "stddev_samp"].map(
      (name) => [name, { name }],
    ),
  ),
  sumdistinct: { name: "sum", isDistinct: true },
  any: { name: "any_value" },
  anylast: { name: "last" },
  anyheavy: { name: "mode" },
  grouparray: { name: "list", skipsNull: true },
  groupuniqarray: { name: "list", isDistinct: true, skipsNull: true },
  quantile: { name: "quantile_cont" },
  quantileexact: { name: "quantile_disc" },
  medianexact: { name: "median" },
  stddevpop: { name: "stddev_pop" },
  stddevsamp: { name: "stddev_samp" },
  varpop: { name: "var_pop" },
  varsamp: { name: "var_samp" },
  covarpop: { name: "covar_pop" },
  covarsamp: { name: "covar_samp" },
  topk: { name: "approx_top_k" },
};

/** Functions of numbers: a property among their arguments is read as a number. */
export const numericFunctions: ReadonlySet<string> = new Set(
  (
    "+ - * / % // sum avg median quantile_cont quantile_disc stddev_pop stddev_samp stddev var_pop var_samp variance " +
    "covar_pop covar_samp corr abs round floor ceil ceiling sqrt cbrt exp ln log log2 log10 pow power sign trunc"
  ).split(" "),
);
/** Functions whose result is a number, in addition. */
export const countingFunctions: ReadonlySet<string> = new Set(
  "count count_star count_if countif len length strlen date_diff epoch epoch_ms year month hour minute second".split(
    " ",
  ),
);
