torchrun --nproc_per_node 1 pretrain_gpt.py --use-checkpoint-args --load weights/same --finetune \
  --seq-length 16 --num-query-groups 4 --group-query-attention --micro-batch-size 2 --global-batch-size 2 \
  --lr 3e-3 --train-iters 8 --mock-data --tokenizer-type NullTokenizer --vocab-size 249
