/** Counts the answers of submissions. */

/** How the answers to one question are read. */
export interface SurveyQuestion {
  id: string;
  /** From 0: older SDKs name answers by it. */
  index: number;
  kind: "text" | "rating" | "choice" | "choices";
  /** Spellings of each choice: that of the survey and its translations. */
  choices: string[][];
  /** Of ratings. */
  min: number;
  max: number;
}

/** One person's submission of a survey, with its latest answers. */
export interface Submission {
  id: string;
  isCompleted: boolean;
  /** First day of its week; null where it is not computed. */
  week: string | null;
  distinctId: string;
  iteration: string | null;
  language: string | null;
  /** Of its last event, in microseconds since 1970. */
  at: number;
  /** By question, as text; null: not answered. Several choices are a JSON list. */
  answers: (string | null)[];
}

export interface QuestionTally {
  answered: number;
  /** Ratings by value; choices by index. */
  values: Record<string, number>;
  /** Answers with a choice that the question does not list. */
  other: number;
  /** Ratings by the first day of the week. */
  weeks: Record<string, Record<string, number>>;
}

export class SurveyTally {
  private responses = 0;
  private readonly tallies: QuestionTally[];
  /** By question: the index of each spelling of a choice. */
  private readonly spellings: Map<string, number>[];

  constructor(
    private readonly questions: readonly SurveyQuestion[],
    private readonly countsPartial: boolean,
  ) {
    this.tallies = questions.map(() => ({ answered: 0, values: {}, other: 0, weeks: {} }));
    this.spellings = questions.map(
      ({ choices }) =>
        new Map(choices.flatMap((texts, index) => texts.map((text): [string, number] => [text, index]))),
    );
  }

  add({ isCompleted, week, answers }: Submission): void {
    if (!isCompleted && !this.countsPartial) return;
    this.responses++;
    for (const [index, answer] of answers.entries())
      if (answer !== null) this.addAnswer(index, answer, week ?? "");
  }

  result() {
    return { responses: this.responses, questions: this.tallies };
  }

  private addAnswer(index: number, answer: string, week: string): void {
    const { kind, min, max } = this.questions[index]!;
    const tally = this.tallies[index]!;
    if (kind === "rating") {
      const rating = Number(answer);
      if (!Number.isInteger(rating) || rating < min || rating > max) return;
      increment(tally.values, String(rating));
      tally.weeks[week] ??= {};
      increment(tally.weeks[week], String(rating));
    } else if (kind !== "text") this.addChoices(index, kind === "choices" ? parseChoices(answer) : [answer]);
    tally.answered++;
  }

  private addChoices(index: number, chosen: readonly string[]): void {
    const tally = this.tallies[index]!;
    const found = new Set(chosen.map((text) => this.spellings[index]!.get(text)));
    for (const choice of found)
      if (choice === undefined) tally.other++;
      else increment(tally.values, String(choice));
  }
}

function increment(counts: Record<string, number>, key: string): void {
  counts[key] = (counts[key] ?? 0) + 1;
}

/** Several choices: a JSON list, or one text. */
export function parseChoices(answer: string): string[] {
  try {
    const parsed: unknown = JSON.parse(answer);
    if (Array.isArray(parsed))
      return parsed.map((item) => (typeof item === "string" ? item : JSON.stringify(item)));
  } catch {}
  return [answer];
}
