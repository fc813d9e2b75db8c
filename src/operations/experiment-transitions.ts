/** Transitions of experiments between their states (contract: experiments 1.3). */

import {
  conclusionCommentMax,
  conclusions,
  ExperimentBody,
  type ExperimentRecord,
  exampleExperiment as example,
} from "../experiments/api/schemas.ts";
import { type Transition, transitExperiment } from "../experiments/transitions.ts";
import { bool, enumeration, int, nullable, object, optional, string } from "../http/schemas.ts";
import {
  body,
  type ExperimentContext as Context,
  experimentArgument,
  getExperimentActor,
  experimentTag as tag,
} from "./experiment-list.ts";
import { operation } from "./operation.ts";

const Concluding = {
  conclusion: optional(nullable(enumeration(conclusions))),
  conclusion_comment: optional(nullable(string({ blank: true, max: conclusionCommentMax }))),
};

function transition(
  name: Transition,
  {
    command = name,
    summary,
    answer,
    done,
    inputs = {},
    inputExample,
  }: {
    command?: string;
    summary: string;
    answer: string;
    done: (experiment: ExperimentRecord) => string;
    inputs?: Record<string, ReturnType<typeof optional>>;
    inputExample?: object;
  },
) {
  return operation({
    id: `experiments.${name}`,
    on: "project",
    scope: "experiment:write",
    tag,
    summary,
    description: "400 `invalid_transition` from another state.",
    http: { method: "POST", path: `/experiments/:id/${name}`, status: 200, answer },
    cli: {
      name: `experiments ${command}`,
      examples: [`experiments ${command} 7${name === "ship_variant" ? " test" : ""}`],
      arguments: [
        experimentArgument,
        ...(name === "ship_variant"
          ? [{ name: "variant", description: "key of the variant", member: "variant_key" }]
          : []),
      ],
      done,
    },
    input: object({ id: int(), ...inputs }),
    inputExample,
    output: ExperimentBody,
    example,
    run: (context: Context, { id, ...input }: { id: number }) =>
      body(context, transitExperiment(context.stores, getExperimentActor(context), id, name, input)),
  });
}

/** In the order of the documentation. */
export const experimentTransitions = [
  transition("launch", {
    summary: "Launch an experiment",
    answer: "The running experiment.",
    done: (experiment) =>
      `Experiment ${experiment.name} launched; flag ${experiment.feature_flag_key} is on.`,
  }),
  transition("pause", {
    summary: "Pause an experiment",
    answer: "The paused experiment.",
    done: (experiment) => `Experiment ${experiment.name} paused; flag ${experiment.feature_flag_key} is off.`,
  }),
  transition("resume", {
    summary: "Resume an experiment",
    answer: "The running experiment.",
    done: (experiment) => `Experiment ${experiment.name} resumed; flag ${experiment.feature_flag_key} is on.`,
  }),
  transition("end", {
    summary: "End an experiment",
    answer: "The stopped experiment; its flag is unchanged.",
    inputs: Concluding,
    inputExample: { conclusion: "won" },
    done: (experiment) =>
      `Experiment ${experiment.name} ended; flag ${experiment.feature_flag_key} is unchanged.`,
  }),
  transition("ship_variant", {
    command: "ship",
    summary: "Ship a variant of an experiment",
    answer: "The stopped experiment; everyone gets the variant.",
    inputExample: { variant_key: "test", conclusion: "won" },
    inputs: {
      variant_key: string({ max: 400, description: "The variant to ship." }) as never,
      ...Concluding,
      release_to_everyone: optional(
        bool({ default: true, description: "Otherwise the present condition sets get the variant." }),
      ),
    },
    done: (experiment) =>
      `Experiment ${experiment.name} ended and its variant shipped with flag ${experiment.feature_flag_key}.`,
  }),
  transition("reset", {
    summary: "Reset an experiment to a draft",
    answer: "The draft; its flag and events stay.",
    done: (experiment) => `Experiment ${experiment.name} is a draft again.`,
  }),
  transition("archive", {
    summary: "Archive a stopped experiment",
    answer: "The archived experiment.",
    inputExample: { disable_feature_flag: true },
    inputs: { disable_feature_flag: optional(bool({ description: "Turn off the flag as well." })) },
    done: (experiment) => `Experiment ${experiment.name} archived.`,
  }),
  transition("unarchive", {
    summary: "Restore an archived experiment",
    answer: "The experiment.",
    done: (experiment) => `Experiment ${experiment.name} restored from the archive.`,
  }),
];
