/**
 * Events of surveys: how often they were shown, dismissed and answered, and their answers.
 *
 * Source: contract, experiments 2.11.
 */

import type { JsonObject } from "../../lib/json/value.ts";
import { QueryRejectedError } from "../event-filters.ts";
import { type EventSql, stringAt, toJson } from "../sql-dialect.ts";
import type { TrendsRequest } from "./event-source.ts";
import { type QuestionTally, type Submission, type SurveyQuestion, SurveyTally } from "./survey-tally.ts";

interface Selection {
  surveyIds: string[];
  /** Surveys of which incomplete submissions count too. */
  partialIds: string[];
  /** Microseconds since 1970; the end is exclusive. */
  start: number;
  end: number;
}

export type SurveyComputation =
  | { what: "counts"; isTotal: boolean }
  | { what: "tally"; questions: SurveyQuestion[] }
  | { what: "page"; questions: SurveyQuestion[]; limit: number; offset: number }
  | { what: "all"; questions: SurveyQuestion[] };

/** What to compute; a plain object, because it is sent to the engine. */
export type SurveyRequest = Selection & SurveyComputation;

/** Of one survey, or of all together. Times are in microseconds since 1970. */
export interface SurveyCounts {
  surveyId: string;
  shown: number;
  dismissed: number;
  /** Submissions that count. */
  sent: number;
  personsShown: number;
  personsDismissed: number;
  personsSent: number;
  /** Persons who neither dismissed nor answered. */
  personsOnlyShown: number;
  times: Record<"shown" | "dismissed" | "sent", { first: number; last: number } | null>;
}

export interface SurveyTallies {
  responses: number;
  questions: QuestionTally[];
}

export interface SurveyPage {
  count: number;
  submissions: Submission[];
}

/** Computes one of the requests. */
export async function computeSurvey(store: EventSql, request: TrendsRequest): Promise<JsonObject> {
  const survey = request.query as unknown as SurveyRequest;
  const sql = new SurveySql(store, request, survey);
  const compute = async () => {
    switch (survey.what) {
      case "counts":
        return { counts: await sql.counts(survey.isTotal) };
      case "tally":
        return await sql.tally(survey.questions);
      case "page":
        return await sql.page(survey.questions, survey);
      case "all":
        throw new QueryRejectedError("invalid_input", "All submissions are only available as a stream.");
    }
  };
  return (await compute()) as unknown as JsonObject;
}

/**
 * Writes all submissions, newest first, as lines of JSON, while they are read.
 *
 * @param sink waits for the reader
 */
export async function streamSurvey(
  store: EventSql,
  request: TrendsRequest,
  sink: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const survey = request.query as unknown as Selection & { questions: SurveyQuestion[] };
  const encoder = new TextEncoder();
  let [lines, length]: [string[], number] = [[], 0];
  const flush = async () => {
    await sink(encoder.encode(lines.join("")));
    [lines, length] = [[], 0];
  };
  await new SurveySql(store, request, survey).all(survey.questions, async (submission) => {
    const line = `${JSON.stringify(submission)}\n`;
    lines.push(line);
    length += line.length;
    if (length >= blockLength) await flush();
  });
  await flush();
}

/** Characters that a stream sends together. */
const blockLength = 64 * 1024;
/** Characters of the answers on one page. */
const pageLengthMax = 16 * 1024 * 1024;

const kinds = ["shown", "dismissed", "sent"] as const;

class SurveySql {
  constructor(
    private readonly store: EventSql,
    private readonly request: TrendsRequest,
    private readonly survey: Selection,
  ) {}

  /** One row per survey with an event. */
  async counts(isTotal: boolean): Promise<SurveyCounts[]> {
    const { dialect } = this.store;
    const survey = isTotal ? dialect.text("") : this.property("$survey_id");
    const isKind = kinds.map((kind) => `CASE WHEN ${this.condition(kind)} THEN 1 ELSE 0 END AS ${kind}`);
    const times = kinds.flatMap((kind) => [
      `min(CASE WHEN ${kind} = 1 THEN moment END)::DOUBLE AS ${kind}_first`,
      `max(CASE WHEN ${kind} = 1 THEN moment END)::DOUBLE AS ${kind}_last`,
    ]);
    const rows = await this.store.rows(
      `WITH found ${dialect.asMaterialized} (
         SELECT ${survey} AS survey, ${dialect.who} AS who, ${this.moment} AS moment, ${this.submission} AS submission,
           ${isKind.join(", ")}
         FROM events e ${dialect.ownerOfEvent(this.request.projectId)}
         WHERE ${this.within(["survey shown", "survey dismissed", "survey sent"])}
       ), person AS (
         SELECT survey, who, max(shown) AS shown, max(dismissed) AS dismissed, max(sent) AS sent
         FROM found GROUP BY survey, who
       ), persons AS (
         SELECT survey, sum(shown)::DOUBLE AS persons_shown, sum(dismissed)::DOUBLE AS persons_dismissed,
           sum(sent)::DOUBLE AS persons_sent,
           sum(CASE WHEN shown = 1 AND dismissed = 0 AND sent = 0 THEN 1 ELSE 0 END)::DOUBLE AS persons_only_shown
         FROM person GROUP BY survey
       ), totals AS (
         SELECT survey, sum(shown)::DOUBLE AS total_shown, sum(dismissed)::DOUBLE AS total_dismissed,
           count(DISTINCT CASE WHEN sent = 1 THEN submission END)::DOUBLE AS total_sent, ${times.join(", ")}
         FROM found GROUP BY survey
       )
       SELECT t.survey, total_shown, total_dismissed, total_sent, persons_shown, persons_dismissed, persons_sent,
         persons_only_shown, ${kinds.map((kind) => `${kind}_first, ${kind}_last`).join(", ")}
       FROM totals t JOIN persons p ON p.survey = t.survey ORDER BY t.survey`,
    );
    return (rows as [string, ...(number | null)[]][]).map(([surveyId, ...numbers]) => {
      const [shown, dismissed, sent, personsShown, personsDismissed, personsSent, personsOnlyShown] =
        numbers as number[];
      const time = (index: number) => {
        const [first, last] = numbers.slice(7 + 2 * index, 9 + 2 * index);
        return first == null || last == null ? null : { first, last };
      };
      return {
        surveyId,
        shown: shown!,
        dismissed: dismissed!,
        sent: sent!,
        personsShown: personsShown!,
        personsDismissed: personsDismissed!,
        personsSent: personsSent!,
        personsOnlyShown: personsOnlyShown!,
        times: { shown: time(0), dismissed: time(1), sent: time(2) },
      };
    });
  }

  /** Distributions of the answers. The texts of open questions are not read. */
  async tally(questions: readonly SurveyQuestion[]): Promise<SurveyTallies> {
    const { dialect } = this.store;
    const { timezone, weekStartDay } = this.request;
    const week = dialect.dayText(dialect.startOf("week", dialect.wallTime("e", timezone), weekStartDay ?? 1));
    const answers = this.answers(questions).map((answer, index) =>
      questions[index]!.kind === "text" ? `CASE WHEN ${answer} <> '' THEN '1' END` : answer,
    );
    const tally = new SurveyTally(questions, this.countsPartial);
    await this.read(
      `SELECT ${this.submission} AS submission, ${this.isCompleted} AS completed, ${week} AS week, '' AS distinct_id,
         ${dialect.nullText} AS iteration, ${dialect.nullText} AS language, ${this.moment} AS moment${listed(answers)}
       FROM events e WHERE ${this.within(["survey sent"])}
       ORDER BY submission, moment, e.historical, e.seq`,
      questions,
      (submission) => tally.add(submission),
    );
    return tally.result();
  }

  /** Submissions that count, newest first. */
  async page(
    questions: readonly SurveyQuestion[],
    { limit, offset }: { limit: number; offset: number },
  ): Promise<SurveyPage> {
    const [[count = 0] = []] = (await this.store.rows(
      `SELECT count(*)::DOUBLE AS n FROM (${this.newest}) c`,
    )) as number[][];
    const submissions: Submission[] = [];
    if (offset >= count) return { count, submissions };
    const listed = `${this.newest} ORDER BY newest DESC, submission LIMIT ${limit} OFFSET ${offset}`;
    let length = 0;
    await this.readListed(listed, questions, (submission) => {
      submissions.push(submission);
      length += submission.answers.reduce((sum, answer) => sum + (answer?.length ?? 0), 0);
      if (length > pageLengthMax)
        throw new QueryRejectedError(
          "invalid_input",
          `The responses on this page exceed ${pageLengthMax.toLocaleString("en-US")} characters. Use a smaller \`limit\`, or download the CSV file.`,
        );
    });
    return { count, submissions };
  }

  /** All submissions that count, newest first, while they are read. */
  async all(
    questions: readonly SurveyQuestion[],
    use: (submission: Submission) => Promise<void>,
  ): Promise<void> {
    await this.readListed(this.newest, questions, use);
  }

  /** SQL of the submissions that count, with the time of their last event. */
  private get newest(): string {
    return `SELECT submission, max(moment) AS newest FROM (
        SELECT ${this.submission} AS submission, ${this.moment} AS moment,
          CASE WHEN ${this.isCompleted} THEN 1 ELSE 0 END AS completed
        FROM events e WHERE ${this.within(["survey sent"])}
      ) s GROUP BY submission${this.countsPartial ? "" : " HAVING max(completed) = 1"}`;
  }

  private async readListed(
    submissions: string,
    questions: readonly SurveyQuestion[],
    use: (submission: Submission) => void | Promise<void>,
  ): Promise<void> {
    const { dialect } = this.store;
    const answers = this.answers(questions);
    await this.read(
      `WITH listed AS (${submissions}),
       found AS (
         SELECT ${this.submission} AS submission, ${this.isCompleted} AS completed, e.distinct_id AS distinct_id,
           ${this.property("$survey_iteration")} AS iteration, ${this.property("$survey_language")} AS language,
           ${this.moment} AS moment, CASE WHEN e.historical THEN 1 ELSE 0 END AS lane, e.seq AS seq
           ${listed(answers.map((answer, index) => `${answer} AS a_${index}`))}
         FROM events e WHERE ${this.within(["survey sent"])}
       )
       SELECT f.submission, f.completed, ${dialect.nullText} AS week, f.distinct_id, f.iteration, f.language,
         f.moment::DOUBLE${listed(questions.map((_, index) => `f.a_${index}`))}
       FROM found f JOIN listed l ON l.submission = f.submission
       ORDER BY l.newest DESC, f.submission, f.moment, f.lane, f.seq`,
      questions,
      use,
    );
  }

  /** Merges the consecutive rows of each submission: per question its latest answer. */
  private async read(
    sql: string,
    questions: readonly SurveyQuestion[],
    use: (submission: Submission) => void | Promise<void>,
  ): Promise<void> {
    let current: Submission | undefined;
    for await (const rows of this.store.portions(sql)) {
      for (const row of rows) {
        const [id, completed, week, distinctId, iteration, language, moment, ...answers] = row as [
          string,
          boolean | number,
          string | null,
          string,
          string | null,
          string | null,
          number,
          ...(string | null)[],
        ];
        if (current === undefined || current.id !== id) {
          if (current !== undefined) await use(current);
          current = {
            id,
            isCompleted: false,
            week,
            distinctId,
            iteration,
            language,
            at: Number(moment),
            answers: questions.map(() => null),
          };
        }
        current.isCompleted ||= Boolean(completed);
        Object.assign(current, { week, distinctId, iteration, language, at: Number(moment) });
        for (const [index, answer] of answers.entries())
          if (answer !== null && answer !== "" && answer !== "[]") current.answers[index] = answer;
      }
    }
    if (current !== undefined) await use(current);
  }

  private get countsPartial(): boolean {
    return this.survey.partialIds.length > 0;
  }

  private get moment(): string {
    const { dialect } = this.store;
    return dialect.micros(dialect.time("e"));
  }

  /** Older SDKs send no id: each event is a submission. */
  private get submission(): string {
    return `coalesce(nullif(${this.property("$survey_submission_id")}, ''), ${this.store.dialect.exact("e", "uuid")})`;
  }

  private get isCompleted(): string {
    return `coalesce(${this.property("$survey_completed")}, 'true') <> 'false'`;
  }

  private get isPartial(): string {
    const { partialIds } = this.survey;
    return partialIds.length === 0
      ? "false"
      : `${this.property("$survey_id")} IN (${this.texts(partialIds)})`;
  }

  /** A dismissal after a partial submission that counts is not another response. */
  private condition(kind: (typeof kinds)[number]): string {
    if (kind === "shown") return "e.event = 'survey shown'";
    if (kind === "sent") return `e.event = 'survey sent' AND (${this.isCompleted} OR ${this.isPartial})`;
    const isSubmitted = `coalesce(${this.property("$survey_partially_completed")}, 'false') = 'true'`;
    return `e.event = 'survey dismissed' AND NOT (${isSubmitted} AND ${this.isPartial})`;
  }

  private within(events: readonly string[]): string {
    const { dialect } = this.store;
    const { start, end, surveyIds } = this.survey;
    return [
      `e.project_id = ${this.request.projectId}`,
      `e.event IN (${this.texts(events)})`,
      `${dialect.time("e")} >= ${dialect.timestamp(start)}`,
      `${dialect.time("e")} < ${dialect.timestamp(end)}`,
      `${this.property("$survey_id")} IN (${this.texts(surveyIds)})`,
    ].join(" AND ");
  }

  /** SQL of the answer to each question in an event `e`. */
  private answers(questions: readonly SurveyQuestion[]): string[] {
    const { dialect, eventProperties } = this.store;
    const names = questions.flatMap(({ id, index }) => [
      `$survey_response_${id}`,
      index === 0 ? "$survey_response" : `$survey_response_${index}`,
    ]);
    const texts = dialect.memberTexts(toJson(eventProperties), names);
    return questions.map((_, index) => `coalesce(nullif(${texts[2 * index]}, ''), ${texts[2 * index + 1]})`);
  }

  private property(name: string): string {
    return stringAt(this.store.dialect, this.store.eventProperties, name);
  }

  private texts(values: readonly string[]): string {
    return values.map((value) => this.store.dialect.text(value)).join(", ");
  }
}

const listed = (columns: readonly string[]) => columns.map((column) => `, ${column}`).join("");
