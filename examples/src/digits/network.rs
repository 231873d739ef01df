//! A network of three layers, its gradients, and how they are computed.

use super::data::{CLASSES, Images, PIXELS};
use super::matrix::{multiply, transposed};
use gradwire::Gradient;

/// The width of the two inner layers.
const HIDDEN: usize = 1024;

// ANCHOR: gradients
/// What a rank computes in one step, and what becomes of it when the ranks' are put together.
#[derive(Gradient, Debug)]
#[gradient(reduce = Average)]
pub struct Gradients {
    /// The derivative of the loss by every parameter.
    pub network: Network,
    /// The mean of the images' losses.
    pub loss: f32,
    /// How many images were looked at: all of the batch, by all ranks together.
    #[gradient(reduce = Sum)]
    pub images: u64,
    /// The length of the vector of derivatives: the largest of any rank.
    #[gradient(reduce = Max)]
    pub norm: f32,
}

/// 64 pixels to 1024, to 1024, to 10 digits: 1,126,410 parameters.
#[derive(Gradient, Clone, Debug)]
pub struct Network {
    first: Layer<HIDDEN>,
    second: Layer<HIDDEN>,
    output: Layer<CLASSES>,
}

/// The number of outputs is known at compile time, that of inputs is the number of rows.
#[derive(Gradient, Clone, Debug)]
#[gradient(reduce = Average)]
struct Layer<const OUTPUTS: usize> {
    weights: Vec<[f32; OUTPUTS]>,
    bias: [f32; OUTPUTS],
}
// ANCHOR_END: gradients

impl Network {
    /// Weights to begin with.
    #[must_use]
    pub fn random(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            first: Layer::random(PIXELS, &mut random),
            second: Layer::random(HIDDEN, &mut random),
            output: Layer::random(HIDDEN, &mut random),
        }
    }

    /// As many parameters, all 0.
    #[must_use]
    pub fn zeros() -> Self {
        Self { first: Layer::zeros(PIXELS), second: Layer::zeros(HIDDEN), output: Layer::zeros(HIDDEN) }
    }

    /// All parameters, tensor by tensor.
    pub fn tensors(&self) -> [&[f32]; 6] {
        let Self { first, second, output } = self;
        let weights =
            [first.weights.as_flattened(), second.weights.as_flattened(), output.weights.as_flattened()];
        [weights[0], &first.bias, weights[1], &second.bias, weights[2], &output.bias]
    }

    /// All parameters, tensor by tensor, to be changed.
    pub fn tensors_mut(&mut self) -> [&mut [f32]; 6] {
        let Self { first, second, output } = self;
        [
            first.weights.as_flattened_mut(),
            &mut first.bias,
            second.weights.as_flattened_mut(),
            &mut second.bias,
            output.weights.as_flattened_mut(),
            &mut output.bias,
        ]
    }

    /// How many of the images are read right.
    #[must_use]
    pub fn count_right(&self, images: &Images) -> usize {
        let first = squashed(self.first.forward(&images.pixels));
        let second = squashed(self.second.forward(&first));
        let scores = self.output.forward(&second);
        let largest = |scores: &[f32]| (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        let guesses = scores.chunks_exact(CLASSES).map(largest);
        guesses.zip(&images.labels).filter(|(guess, label)| *guess == Some(usize::from(**label))).count()
    }
}

impl Gradients {
    /// No gradients yet.
    #[must_use]
    pub fn zeros() -> Self {
        Self { network: Network::zeros(), loss: 0.0, images: 0, norm: 0.0 }
    }

    /// Computes the gradients of some images. What is summed over them is divided by `share`: the number of images of the
    /// whole batch over the number of ranks, so that the ranks' average is the batch's, however it is divided.
    pub fn compute(&mut self, network: &Network, images: &Images, share: f32) {
        let Network { first, second, output } = network;
        let after_first = squashed(first.forward(&images.pixels));
        let after_second = squashed(second.forward(&after_first));
        let mut slopes = output.forward(&after_second);
        self.loss = losses_to_slopes(&mut slopes, &images.labels, share);

        let gradient = &mut self.network;
        gradient.output.accumulate(&after_second, &slopes);
        let slopes = through_squashing(output.backward(&slopes), &after_second);
        gradient.second.accumulate(&after_first, &slopes);
        let slopes = through_squashing(second.backward(&slopes), &after_first);
        gradient.first.accumulate(&images.pixels, &slopes);

        self.images = images.len() as u64;
        self.norm = gradient.tensors().into_iter().flatten().map(|slope| slope * slope).sum::<f32>().sqrt();
    }

    /// Damages one value, as a broken machine might.
    pub fn corrupt(&mut self) {
        self.network.output.bias[0] = -self.network.output.bias[0];
    }
}

impl<const OUTPUTS: usize> Layer<OUTPUTS> {
    fn zeros(inputs: usize) -> Self {
        Self { weights: vec![[0.0; OUTPUTS]; inputs], bias: [0.0; OUTPUTS] }
    }

    fn random(inputs: usize, random: &mut fastrand::Rng) -> Self {
        let mut layer = Self::zeros(inputs);
        let limit = (3.0 / inputs as f32).sqrt();
        layer.weights.as_flattened_mut().fill_with(|| limit * (2.0 * random.f32() - 1.0));
        layer
    }

    /// A row of outputs for each row of inputs.
    fn forward(&self, inputs: &[f32]) -> Vec<f32> {
        let rows = inputs.len() / self.weights.len();
        let mut outputs = vec![0.0; rows * OUTPUTS];
        let input = |row: usize, index: usize| inputs[row * self.weights.len() + index];
        multiply(&mut outputs, rows, input, self.weights.as_flattened());
        for row in outputs.chunks_exact_mut(OUTPUTS) {
            row.iter_mut().zip(&self.bias).for_each(|(output, bias)| *output += bias);
        }
        outputs
    }

    /// The derivatives by the inputs, from those by the outputs.
    fn backward(&self, slopes: &[f32]) -> Vec<f32> {
        let rows = slopes.len() / OUTPUTS;
        let mut result = vec![0.0; self.weights.len() * rows];
        // (s · wᵀ)ᵀ = w · sᵀ: only small matrices are transposed.
        let weight = |input: usize, output: usize| self.weights[input][output];
        multiply(&mut result, self.weights.len(), weight, &transposed(slopes, OUTPUTS));
        transposed(&result, rows)
    }

    /// Makes this layer the derivatives by its parameters, from those by its outputs.
    fn accumulate(&mut self, inputs: &[f32], slopes: &[f32]) {
        let width = self.weights.len();
        let input = |index: usize, row: usize| inputs[row * width + index];
        multiply(self.weights.as_flattened_mut(), width, input, slopes);
        self.bias.fill(0.0);
        for row in slopes.chunks_exact(OUTPUTS) {
            self.bias.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
        }
    }
}

/// The hyperbolic tangent, which unlike a rectifier has no kink: where one rank rounds a value to just above 0 and another to
/// just below, nothing comes of it.
fn squashed(mut values: Vec<f32>) -> Vec<f32> {
    values.iter_mut().for_each(|value| *value = value.tanh());
    values
}

/// The derivatives before [`squashed`], from those after it and its result.
fn through_squashing(mut slopes: Vec<f32>, values: &[f32]) -> Vec<f32> {
    slopes.iter_mut().zip(values).for_each(|(slope, value)| *slope *= 1.0 - value * value);
    slopes
}

/// Turns each image's scores into the derivatives of its loss, and returns the losses' sum, both over `share`.
///
/// The loss is the cross entropy: the logarithm of the probability of the right digit, negated.
fn losses_to_slopes(scores: &mut [f32], labels: &[u8], share: f32) -> f32 {
    let mut loss = 0.0;
    for (scores, label) in scores.chunks_exact_mut(CLASSES).zip(labels) {
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let right = usize::from(*label);
        let lead = scores[right] - largest;
        scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
        let sum: f32 = scores.iter().sum();
        scores.iter_mut().for_each(|score| *score /= sum * share);
        scores[right] -= 1.0 / share;
        loss += (sum.ln() - lead) / share;
    }
    loss
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The derivatives are those that small changes show.
    #[test]
    fn gradients_are_differences_of_losses() {
        let images = Images {
            pixels: (0..3 * PIXELS).map(|index| (index % 16) as f32 / 16.0).collect(),
            labels: vec![3, 0, 9],
        };
        let network = Network::random(5);
        let loss = |network: &Network| {
            let mut gradients = Gradients::zeros();
            gradients.compute(network, &images, 3.0);
            gradients
        };
        let gradients = loss(&network).network;
        for tensor in 0..6 {
            // The steepest parameter of each tensor, where the difference stands out of the rounding.
            let slopes = gradients.tensors()[tensor];
            let steepest =
                (0..slopes.len()).max_by(|a, b| slopes[*a].abs().total_cmp(&slopes[*b].abs())).unwrap();
            let at = |change: f32| {
                let mut network = network.clone();
                network.tensors_mut()[tensor][steepest] += change;
                loss(&network).loss
            };
            let measured = (at(1e-2) - at(-1e-2)) / 2e-2;
            let slope = slopes[steepest];
            assert!(
                (measured - slope).abs() < 0.05 * slope.abs(),
                "tensor {tensor}: {slope}, measured {measured}"
            );
        }
    }

    /// However a batch is divided, the average of the parts' gradients is the batch's.
    #[test]
    fn the_average_of_uneven_parts_is_the_whole() {
        let images = Images {
            pixels: (0..5 * PIXELS).map(|index| (index % 13) as f32 / 16.0).collect(),
            labels: vec![3, 0, 9, 9, 1],
        };
        let network = Network::random(6);
        let of = |numbers: &[usize], share| {
            let mut gradients = Gradients::zeros();
            gradients.compute(&network, &images.select(numbers), share);
            gradients
        };
        let whole = of(&[0, 1, 2, 3, 4], 5.0);
        let parts = [of(&[0, 1], 2.5), of(&[2, 3, 4], 2.5)];
        assert!((whole.loss - (parts[0].loss + parts[1].loss) / 2.0).abs() < 1e-5);
        let [whole, a, b] = [&whole, &parts[0], &parts[1]].map(|gradients| gradients.network.tensors());
        for (tensor, values) in whole.iter().enumerate() {
            for (index, value) in values.iter().enumerate() {
                let average = (a[tensor][index] + b[tensor][index]) / 2.0;
                assert!((value - average).abs() < 1e-5, "{tensor} {index}: {value} {average}");
            }
        }
    }
}
