A="--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024"
A="$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A"
A="$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A"
A="$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A"
A="$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A"
python pretrain_gpt.py $A
